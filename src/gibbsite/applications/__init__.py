"""Complete applications, from data to answer, built on the public parts of gibbsite.

``denoising`` restores images, ``entities`` finds names in text, ``logistic`` prepares Bayesian logistic
regressions of a million rows, ``segmentation`` labels the pixels of images, ``dimod_sampler`` implements the
sampler interface of dimod. The other modules are parts of these.
"""

from gibbsite._common.public_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __spec__.loader)
