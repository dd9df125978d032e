"""
Named entities with probabilities
=================================

A conditional random field finds persons, places and organisations. Mentions of the same words are linked (a
skip-chain), and Gibbs sampling gives the probability of each.
"""

import matplotlib.pyplot as plt

from gibbsite.applications import EntityRecognizer

recognizer = EntityRecognizer.shipped()
tagged = recognizer.tag("Angela Merkel met Tim Cook of Apple in Berlin. Merkel then left for Paris.")
names = [tagged.text[e.start : e.end] for e in tagged.entities]
sure = [e.probability for e in tagged.entities]
figure, axes = plt.subplots(figsize=(6.5, 3), layout="constrained")
axes.barh(range(len(names)), sure)
axes.set_yticks(range(len(names)), [f"{name} ({e.label})" for name, e in zip(names, tagged.entities, strict=True)])
axes.invert_yaxis()
axes.set(xlabel="probability", xlim=(0, 1))
