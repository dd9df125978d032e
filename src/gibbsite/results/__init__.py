"""Results of all methods: estimates, their uncertainty, the verdict, and how they are shown and saved.

``verdict/`` turns a recording into a :class:`Result` and judges it, ``measure/`` computes the numbers, and the other
modules show, convert and save answers.
"""

from gibbsite.results.answer import Answer, Diagnostics
from gibbsite.results.compare import Comparison, compare
from gibbsite.results.result import Result
from gibbsite.results.table import SiteTable

__all__ = ["Answer", "Comparison", "Diagnostics", "Result", "SiteTable", "compare"]
