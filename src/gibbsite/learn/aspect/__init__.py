"""Aspect models: documents as mixtures of topics, by expectation maximisation (PLSA).

The interface is ``estimator``; ``bags`` reads documents, and ``maximisation`` implements EM.
"""

from gibbsite.learn.aspect.estimator import AspectModel

__all__ = ["AspectModel"]
