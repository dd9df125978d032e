"""Run chains: ``setup`` decides everything once, ``driver`` advances, ``sweep`` is the compiled loop.

``layout`` lays chains out for compiled code, ``record`` and ``tape`` are what is recorded, ``recorders/`` what else
can be recorded, ``executor`` and ``executors/`` where chains run, ``checkpoint`` how runs are saved.
"""

from gibbsite._common.public_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __spec__.loader)
