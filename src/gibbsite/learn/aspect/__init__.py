"""Aspect models: documents as mixtures of topics, by expectation maximisation (PLSA).

``estimator`` is what users call, ``bags`` reads documents, ``maximisation`` has the steps of EM.
"""

from gibbsite.learn.aspect.estimator import AspectModel

__all__ = ["AspectModel"]
