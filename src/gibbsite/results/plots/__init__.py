"""Plots of models and results, as matplotlib draws them; matplotlib is loaded when the first one is drawn.

A plot with one panel takes ``ax=`` and returns the Axes; a plot with several takes ``figure=`` and returns an array
of Axes. Without either, a new figure of pyplot is made, so that ``plt.show()`` and notebooks show it.
"""

from gibbsite.results.plots.convergence import plot_convergence
from gibbsite.results.plots.marginals import plot_marginals
from gibbsite.results.plots.model import plot_model
from gibbsite.results.plots.observables import plot_comparison, plot_fit, plot_observable, plot_round_trips
from gibbsite.results.plots.sensitivity import plot_sensitivity, plot_tornado
from gibbsite.results.plots.trace import plot_autocorrelation, plot_trace
from gibbsite.results.plots.variation import plot_variation

__all__ = [
    "plot_autocorrelation",
    "plot_comparison",
    "plot_convergence",
    "plot_fit",
    "plot_marginals",
    "plot_model",
    "plot_observable",
    "plot_round_trips",
    "plot_sensitivity",
    "plot_tornado",
    "plot_trace",
    "plot_variation",
]
