"""What a model in the BUGS language tells after its runs, besides their results, and before them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import check_integer
from gibbsite.errors import GibbsiteError
from gibbsite.models.base import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gibbsite.applications.bugs.model import BugsModel
    from gibbsite.applications.bugs.simulation.predictions import Arrays, InformationCriterion, Prior
    from gibbsite.results.result import Result

_MOST_LIKELIHOODS = 10**8  # numbers that ArviZ gets without being asked


class AfterRuns(Model):
    """The methods of models in the BUGS language about predictions, priors, ArviZ and pictures."""

    __slots__ = ()

    @property
    def _model(self) -> BugsModel:
        from gibbsite.applications.bugs.model import BugsModel

        assert isinstance(self, BugsModel)
        return self

    def log_likelihood(self, result: Result) -> Arrays:
        """Return the log-likelihood of each observation at each draw of a run.

        Parameters
        ----------
        result : Result
            A run of this model, or of an equal one, that has recorded all unknowns on which observations depend.

        Returns
        -------
        dict of str to array (chains, draws, ...)
            For each observed variable, an axis for each of its indices; a single axis where some elements have no
            likelihood, or where it has vectors as values. What ``dinterval`` observes has none.

        Examples
        --------
        >>> import gibbsite as gs
        >>> text = "model { for (i in 1:3) { x[i] ~ dpois(rate) }  rate ~ dgamma(0.1, 0.1) }"
        >>> model = gs.bugs(text, {"x": [3, 1, 4]})
        >>> result = model.sample(sweeps=1000, rng=1, progress=False)
        >>> model.log_likelihood(result)["x"].shape
        (4, 1000, 3)
        """
        from gibbsite.applications.bugs.simulation.predictions import log_likelihoods

        return log_likelihoods(self._model, result)

    def predict(self, result: Result, *, rng: Any = None) -> Arrays:
        """Draw the observations again at each draw of a run: the posterior predictive distribution.

        Each number is drawn from its distribution given the unknowns of that draw, and given the observed values of
        other data that it depends on. Missing elements of these variables are drawn, too.

        Parameters
        ----------
        result : Result
            A run of this model, or of an equal one, that has recorded all unknowns on which observations depend.
        rng : int, Generator or SeedSequence, optional
            Seed.

        Returns
        -------
        dict of str to array (chains, draws, ...)
            An array for each observed variable.

        Examples
        --------
        >>> import gibbsite as gs
        >>> text = "model { for (i in 1:3) { x[i] ~ dpois(rate) }  rate ~ dgamma(0.1, 0.1) }"
        >>> model = gs.bugs(text, {"x": [3, 1, 4]})
        >>> result = model.sample(sweeps=1000, rng=1, progress=False)
        >>> abs(model.predict(result, rng=1)["x"].mean() - 8.1 / 3.1) < 0.1
        np.True_
        """
        from gibbsite.applications.bugs.simulation.predictions import predict

        return predict(self._model, result, np.random.default_rng(rng))

    def sample_prior(self, draws: int = 1000, *, rng: Any = None) -> Prior:
        """Draw from the model before it has seen its observations; the draws are independent.

        Parameters
        ----------
        draws : int
            How many.
        rng : int, Generator or SeedSequence, optional
            Seed.

        Returns
        -------
        Prior
            ``parameters`` and ``predictive``: arrays (1, draws, ...) of unknown and of observed variables, by name.

        Examples
        --------
        >>> import gibbsite as gs
        >>> text = "model { for (i in 1:3) { x[i] ~ dpois(rate) }  rate ~ dgamma(4, 2) }"
        >>> prior = gs.bugs(text, {"x": [3, 1, 4]}).sample_prior(1000, rng=1)
        >>> abs(prior.parameters["rate"].mean() - 2.0) < 0.15, prior.predictive["x"].shape
        (np.True_, (1, 1000, 3))
        """
        from gibbsite.applications.bugs.simulation.predictions import draw_prior

        return draw_prior(self._model, check_integer("draws", draws, 1), np.random.default_rng(rng))

    def dic(self, result: Result) -> InformationCriterion:
        """Return the deviance information criterion: the mean deviance plus half the variance of the deviance.

        Half the variance estimates the number of parameters [1]_. ``arviz.loo`` is the better guide where some
        observations have much influence.

        References
        ----------
        .. [1] Gelman, A., Carlin, J. B., Stern, H. S., Rubin, D. B. (2004). Bayesian Data Analysis, second edition,
           section 6.7.

        Examples
        --------
        >>> import gibbsite as gs
        >>> text = "model { for (i in 1:3) { x[i] ~ dnorm(mu, 1) }  mu ~ dnorm(0, 0.01) }"
        >>> model = gs.bugs(text, {"x": [3, 1, 4]})
        >>> found = model.dic(model.sample(sweeps=2000, rng=1, progress=False))
        >>> abs(found.parameters - 1.0) < 0.1
        True
        """
        from gibbsite.applications.bugs.simulation.predictions import information_criterion

        return information_criterion(self._model, result)

    def plot(self, *, ax: Axes | None = None, path: str | os.PathLike[str] | None = None) -> Axes:
        """Draw the model as a graph with plates; see :func:`gibbsite.plot_model`.

        Circles are unknown variables, grey ones observed, dashed ones computed; boxes are data without a distribution.
        A plate stands around what a loop repeats.

        Examples
        --------
        >>> import gibbsite as gs
        >>> text = "model { for (i in 1:3) { x[i] ~ dpois(rate) }  rate ~ dgamma(0.1, 0.1) }"
        >>> axes = gs.bugs(text, {"x": [3, 1, 4]}).plot()
        >>> [each.get_text() for each in axes.texts]
        ['i in 1:3', 'rate', 'x']
        """
        from gibbsite.applications.bugs.simulation.plates import draw_plates

        return draw_plates(self._model, ax, None if path is None else Path(path))

    def arviz_groups(self, result: Result) -> dict[str, Arrays]:
        """Return the observations and their log-likelihoods, if the draws tell them and they fit in memory."""
        from gibbsite.applications.bugs.simulation.predictions import log_likelihoods, observations

        data = observations(self._model)
        if result.chains * result.n_draws * sum(each.size for each in data.values()) > _MOST_LIKELIHOODS or not data:
            return {"observed_data": data} if data else {}
        try:
            return {"log_likelihood": log_likelihoods(self._model, result), "observed_data": data}
        except GibbsiteError:
            return {"observed_data": data}
