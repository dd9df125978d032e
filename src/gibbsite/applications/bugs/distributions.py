"""The distributions of the BUGS language: parameters, values, and their codes in compiled code."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Distribution:
    """A distribution as relations name it.

    Attributes
    ----------
    name : str
        Its name.
    code : int
        Its number in compiled code.
    parameters : tuple of str
        Names of its parameters.
    shapes : str
        A letter for each parameter: number (s), vector (v) or matrix (m).
    value : str
        The letter of its values.
    discrete : bool
        Its values are whole numbers.
    low, high : float
        Bounds of its values that do not depend on parameters.
    symbol : str
        Its name in formulas.
    """

    name: str
    code: int
    parameters: tuple[str, ...]
    shapes: str
    value: str = "s"
    discrete: bool = False
    low: float = -math.inf
    high: float = math.inf
    symbol: str = ""

    @property
    def scalar(self) -> bool:
        """Whether value and parameters are numbers."""
        return self.value == "s" and set(self.shapes) <= {"s"}


(
    NORMAL,
    LOGNORMAL,
    STUDENT,
    GAMMA,
    CHI_SQUARED,
    EXPONENTIAL,
    DOUBLE_EXPONENTIAL,
    LOGISTIC,
    WEIBULL,
    PARETO,
    BETA,
    UNIFORM,
    F,
    GENERALISED_GAMMA,
    FLAT,
    BERNOULLI,
    BINOMIAL,
    POISSON,
    NEGATIVE_BINOMIAL,
    GEOMETRIC,
    HYPERGEOMETRIC,
    BETA_BINOMIAL,
    CATEGORICAL,
    INTERVAL,
    NORMAL_MIXTURE,
    MULTIVARIATE_NORMAL,
    MULTIVARIATE_STUDENT,
    WISHART,
    DIRICHLET,
    MULTINOMIAL,
    COVARIANCE_NORMAL,
) = range(31)

_INF = math.inf
_ALL = (
    Distribution("dnorm", NORMAL, ("mean", "precision"), "ss", symbol="Normal"),
    Distribution("dlnorm", LOGNORMAL, ("mean of the logarithm", "precision"), "ss", low=0.0, symbol="LogNormal"),
    Distribution("dt", STUDENT, ("mean", "precision", "degrees of freedom"), "sss", symbol="Student"),
    Distribution("dgamma", GAMMA, ("shape", "rate"), "ss", low=0.0, symbol="Gamma"),
    Distribution("dchisqr", CHI_SQUARED, ("degrees of freedom",), "s", low=0.0, symbol="ChiSquared"),
    Distribution("dexp", EXPONENTIAL, ("rate",), "s", low=0.0, symbol="Exponential"),
    Distribution("ddexp", DOUBLE_EXPONENTIAL, ("mean", "rate"), "ss", symbol="Laplace"),
    Distribution("dlogis", LOGISTIC, ("mean", "rate"), "ss", symbol="Logistic"),
    Distribution("dweib", WEIBULL, ("shape", "rate"), "ss", low=0.0, symbol="Weibull"),
    Distribution("dpar", PARETO, ("shape", "least value"), "ss", low=0.0, symbol="Pareto"),
    Distribution("dbeta", BETA, ("first shape", "second shape"), "ss", low=0.0, high=1.0, symbol="Beta"),
    Distribution("dunif", UNIFORM, ("lower bound", "upper bound"), "ss", symbol="Uniform"),
    Distribution("df", F, ("first degrees of freedom", "second degrees of freedom"), "ss", low=0.0, symbol="F"),
    Distribution(
        "dgen.gamma", GENERALISED_GAMMA, ("shape", "rate", "power"), "sss", low=0.0, symbol="GeneralisedGamma"
    ),
    Distribution("dflat", FLAT, (), "", symbol="Flat"),
    Distribution("dbern", BERNOULLI, ("probability",), "s", discrete=True, low=0, high=1, symbol="Bernoulli"),
    Distribution("dbin", BINOMIAL, ("probability", "size"), "ss", discrete=True, low=0, symbol="Binomial"),
    Distribution("dpois", POISSON, ("mean",), "s", discrete=True, low=0, symbol="Poisson"),
    Distribution(
        "dnegbin", NEGATIVE_BINOMIAL, ("probability", "size"), "ss", discrete=True, low=0, symbol="NegativeBinomial"
    ),
    Distribution("dgeom", GEOMETRIC, ("probability",), "s", discrete=True, low=0, symbol="Geometric"),
    Distribution(
        "dhyper",
        HYPERGEOMETRIC,
        ("first group", "second group", "size", "odds ratio"),
        "ssss",
        discrete=True,
        low=0,
        symbol="Hypergeometric",
    ),
    Distribution(
        "dbetabin",
        BETA_BINOMIAL,
        ("first shape", "second shape", "size"),
        "sss",
        discrete=True,
        low=0,
        symbol="BetaBinomial",
    ),
    Distribution("dcat", CATEGORICAL, ("probabilities",), "v", discrete=True, low=1, symbol="Categorical"),
    Distribution("dinterval", INTERVAL, ("value", "cut points"), "sv", discrete=True, low=0, symbol="Interval"),
    Distribution("dnormmix", NORMAL_MIXTURE, ("means", "precisions", "weights"), "vvv", symbol="NormalMixture"),
    Distribution("dmnorm", MULTIVARIATE_NORMAL, ("mean", "precision"), "vm", "v", symbol="Normal"),
    Distribution(
        "dmt", MULTIVARIATE_STUDENT, ("mean", "precision", "degrees of freedom"), "vms", "v", symbol="Student"
    ),
    Distribution("dwish", WISHART, ("scale", "degrees of freedom"), "ms", "m", symbol="Wishart"),
    Distribution("ddirch", DIRICHLET, ("weights",), "v", "v", low=0.0, high=1.0, symbol="Dirichlet"),
    Distribution(
        "dmulti", MULTINOMIAL, ("probabilities", "size"), "vs", "v", discrete=True, low=0, symbol="Multinomial"
    ),
    Distribution("dmnorm.vcov", COVARIANCE_NORMAL, ("mean", "covariance"), "vm", "v", symbol="Normal"),
)

#: Distributions by name.
DISTRIBUTIONS = {each.name: each for each in _ALL}
#: Distributions by code.
BY_CODE = {each.code: each for each in _ALL}

#: Other names of distributions.
OTHER_NAMES = {
    "dbinom": "dbin",
    "dnegbinom": "dnegbin",
    "dchisq": "dchisqr",
    "dweibull": "dweib",
    "ddirich": "ddirch",
    "dlnormal": "dlnorm",
    "dggamma": "dgen.gamma",
}


def find_distribution(name: str) -> Distribution | None:
    """Return the distribution of a name, or None.

    Examples
    --------
    >>> find_distribution("dbinom").name, find_distribution("dnothing")
    ('dbin', None)
    """
    return DISTRIBUTIONS.get(OTHER_NAMES.get(name, name))
