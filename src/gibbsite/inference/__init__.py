"""``gibbsite.infer``: a question about a model, answered by the method that fits.

Tables of methods (``methods.py``), checks of arguments, the choice, the solution by one method, best states,
and the answer with its verdict; methods themselves are imported when they are used.
"""

from gibbsite._common.public_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __spec__.loader)
