"""
Max-cut
=======

The largest cut of a graph is the ground state of an antiferromagnet. Independent annealed chains that agree on the
best state are evidence, but no proof, that it is the best. In the picture, the sites of the two sides have two colors.
"""

import networkx as nx
import numpy as np

import gibbsite as gs

graph = nx.random_regular_graph(3, 40, seed=2)
i, j = np.array(graph.edges()).T
model = gs.ising((i, j, np.full(i.size, -1.0)))
best = gs.infer(model, task="MAP", method="annealed", rng=1, progress=False)
print(best.line())
side = {name: str(label) for name, label in best.assignment.items()}
cut = sum(side[str(a)] != side[str(b)] for a, b in graph.edges())
axes = gs.plot_model(model, color={name: f"side {label}" for name, label in side.items()}, names=False)
axes.set_title(f"{cut} of {graph.number_of_edges()} edges are cut", fontsize=10)
