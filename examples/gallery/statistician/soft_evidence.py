"""
Evidence that is not certain
============================

A reader of X-rays says "abnormal", but is right only in some cases. Such *soft evidence* is given as likelihoods: how
probable the report is for each state of the X-ray. Here the reader is right with the same probability in both states;
at one half the report says nothing.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

clinic = gs.example("asia")
reliability = np.linspace(0.5, 0.99, 12)
curves: dict[str, list[float]] = {"lung": [], "tub": [], "bronc": []}
for right in reliability:
    answer = gs.infer(clinic.observe({"xray": {"yes": right, "no": 1 - right}}))
    for disease, curve in curves.items():
        curve.append(answer.marginals[disease]["yes"])

figure, axes = plt.subplots(layout="constrained")
for disease, curve in curves.items():
    axes.plot(reliability, curve, "o-", ms=3, label=disease)
axes.set(xlabel="probability that the reader is right", ylabel='probability of "yes"')
axes.legend(frameon=False)
