"""``gibbsite.infer``, which answers a question about a model by the method that fits.

``asking`` chooses a method, ``methods`` lists them and checks arguments, ``solving`` answers by one of them, ``trying``
tries several in turn, and ``answer`` is the answer. The methods themselves are imported when they are used.
"""

from gibbsite._common.public_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __spec__.loader)
