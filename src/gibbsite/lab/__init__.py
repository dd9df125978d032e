"""The lab: replications of experiments of papers, and comparisons with the published results.

>>> import gibbsite as gs
>>> gs.lab.NAMES[0]
'herded-two-variables'
"""

from gibbsite.lab.experiment import NAMES, Experiment, experiments, find, run
from gibbsite.lab.findings import Findings, Table

__all__ = ["NAMES", "Experiment", "Findings", "Table", "experiments", "find", "run"]
