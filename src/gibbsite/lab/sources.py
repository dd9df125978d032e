"""The papers whose experiments are run again."""

HERDED = "Chen, Bornn, de Freitas, Eskelin, Fang and Welling (2016), Herded Gibbs sampling, JMLR 17"
TIJDEMAN = "Tijdeman (1980), The chairman assignment problem, Discrete Mathematics 32"
DOGS = "Mitliagkas and Mackey (2017), Improving Gibbs sampler scan quality with DoGS, ICML"
DOMKE = (
    "Domke (2015), Maximum likelihood learning with arbitrary treewidth via fast-mixing parameter sets, NIPS"
)
POISSON = "Zhang and De Sa (2019), Poisson-minibatching for Gibbs sampling, NeurIPS"
MINIBATCH = "De Sa, Chen and Wong (2018), Minibatch Gibbs sampling on large graphical models, ICML"
TEMPERING = (
    "Syed, Bouchard-Cote, Deligiannidis and Doucet (2022), Non-reversible parallel tempering, JRSS B 84"
)
LANGEVIN_NOTES = "Lecture notes, chapter 5: Metropolis-Hastings, Gibbs sampling and Langevin methods"
GIBBS_NOTES = "Lecture notes, day 22: Gibbs sampling, after Bishop (2006), Pattern recognition, section 11.3"
