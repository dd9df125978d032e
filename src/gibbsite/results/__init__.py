"""What came out: estimates, their uncertainty, the verdict, and ways to keep them.

``make`` turns a recording into a :class:`Result`; ``measure/`` has the numbers, ``verdict/`` how far to
trust them, the other files ways to look at a result and to keep it.
"""

from gibbsite.results.answer import Answer, Diagnostics
from gibbsite.results.compare import Comparison, compare
from gibbsite.results.result import Result
from gibbsite.results.table import SiteTable

__all__ = ["Answer", "Comparison", "Diagnostics", "Result", "SiteTable", "compare"]
