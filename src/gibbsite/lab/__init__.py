"""The lab: experiments of papers, run again, with what they printed beside what is found here.

>>> import gibbsite as gs
>>> gs.lab.NAMES[0]
'herded-two-variables'
"""

from gibbsite.lab.experiment import NAMES, Experiment, experiments, find, run
from gibbsite.lab.findings import Findings, Table

__all__ = ["NAMES", "Experiment", "Findings", "Table", "experiments", "find", "run"]
