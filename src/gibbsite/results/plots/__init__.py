"""Pictures of results; matplotlib is loaded when the first one is drawn.

``plots`` has marginals and traces, ``convergence`` errors against draws, ``variation`` bounds on the bias
of scans; the others are parts of them.
"""

from gibbsite.results.plots.convergence import plot_convergence
from gibbsite.results.plots.plots import plot_marginals, plot_trace
from gibbsite.results.plots.variation import plot_variation

__all__ = ["plot_convergence", "plot_marginals", "plot_trace", "plot_variation"]
