"""Names that applications accept as methods; the command line offers them without importing the applications."""

DENOISING = ("herded-shared", "herded", "herded-site", "gibbs", "mean-field", "mean-field-parallel", "icm", "annealed")
PRIORS = ("potts", "truncated-linear")
SCRIBBLES = ("gibbs", "herded", "blocks", "mean-field", "annealed", "icm")
PATCHES = ("plsa", "systematic", "dogs", "chromatic", "herded", "blocks", "mean-field")
PATCH_LABELS = ("marginal", "majority")
ENTITIES = ("viterbi", "posterior", "gibbs", "herded", "blocks")
ENTITY_FORMATS = ("inline", "tsv", "json", "html")
