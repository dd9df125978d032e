"""Questions about a model given evidence: events, next observations, conflicts, sensitivity, interventions.

>>> import gibbsite as gs
>>> asia = gs.example("asia").observe({"xray": "yes"})
>>> answer = gs.questions.ask(asia, ["lung = yes or tub = yes"])
>>> round(answer.probability("lung = yes or tub = yes"), 4)
0.576
"""

from gibbsite._common.public_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __spec__.loader)
