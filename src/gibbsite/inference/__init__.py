"""``gibbsite.infer``: a question about a model, answered by the method that fits.

Tables of methods (``methods.py``), checks of arguments, the choice, the solution by one method, best states,
and the answer with its verdict; methods themselves are imported when they are used.
"""

from gibbsite.inference.answer import Inference, Verdict
from gibbsite.inference.asking import infer
from gibbsite.inference.methods import ARGUMENTS, KERNELS, METHODS, SAMPLING, TASKS, WEIGHTED

__all__ = [
    "ARGUMENTS",
    "KERNELS",
    "METHODS",
    "SAMPLING",
    "TASKS",
    "WEIGHTED",
    "Inference",
    "Verdict",
    "infer",
]
