"""
Named entities with probabilities
=================================

A conditional random field finds persons (PER), places (LOC) and organisations (ORG). Mentions of the same words are
linked (a skip-chain), and Gibbs sampling gives the probability of each label.
"""

import matplotlib.pyplot as plt

from gibbsite.applications import EntityRecognizer

recognizer = EntityRecognizer.shipped()
tagged = recognizer.tag("Boris Becker beat Michael Chang in Frankfurt. Becker then flew to Reuters in Paris.")
names = [tagged.text[e.start : e.end] for e in tagged.entities]
sure = [e.probability for e in tagged.entities]
figure, axes = plt.subplots(figsize=(6.5, 3), layout="constrained")
axes.barh(range(len(names)), sure)
axes.set_yticks(range(len(names)), [f"{name} ({e.label})" for name, e in zip(names, tagged.entities, strict=True)])
axes.invert_yaxis()
axes.set(xlabel="probability", xlim=(0, 1))
