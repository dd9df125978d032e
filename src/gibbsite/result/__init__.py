"""What came out: estimates, their uncertainty, the verdict, and ways to keep them."""

from gibbsite.result.compare import Comparison, compare
from gibbsite.result.result import Result
from gibbsite.result.save import load_result
from gibbsite.result.table import SiteTable

__all__ = ["Comparison", "Result", "SiteTable", "compare", "load_result"]
