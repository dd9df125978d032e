"""Let it run: chains, blocks, checkpoints, and what is recorded.

``chain`` has the loop, ``engine`` blocks, budgets and checkpoints, ``tape`` what compiled code writes,
``recorders/`` what else can be recorded, ``chain_layout`` how chains are laid out.
"""

from gibbsite._common.public_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __spec__.loader)
