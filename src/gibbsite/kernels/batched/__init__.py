"""Updates of many sites, or of many chains, at once: one file for each way, which registers it.

``base`` says what a way is; ``board``, ``heatbath``, ``keyed``, ``lanes`` and ``selected`` are parts that
several of them use.
"""

from gibbsite._common.loading import load_modules

load_modules(__name__)
