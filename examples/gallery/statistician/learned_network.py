"""
A network learned from past cases
=================================

A clinic has records of two thousand patients, with blank cells. Which findings depend on each other, how sure is that,
and what do the records say about a new patient? Structures are drawn from their posterior, tables and blank cells are
drawn together, and the answer has the uncertainty of the tables.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

true = gs.example("asia")
rng = np.random.default_rng(4)
codes = gs.solve_exact(true, task="PR").draw(2000, rng)
records = {
    site: [None if rng.random() < 0.03 else true.labels(k)[code] for code in codes[:, k]]
    for k, site in enumerate(true.sites)
}
cases = gs.learn.read_cases(records, states={site: ["no", "yes"] for site in true.sites})
print(cases)

# %%
# Probabilities of edges, from the complete records. Nothing but data tells directions, so some edges have either.
posterior = gs.learn.sample_structures(cases, incomplete="drop", sweeps=1500, rng=1, progress=False)
print(posterior.summary(8))

# %%
# Tables of the structure that doctors know, by Gibbs sampling of tables and blank cells together.
fit = gs.learn.fit_tables(cases, true, prior="bdeu", method="gibbs", sweeps=1000, rng=1, progress=False)
print(fit.diagnostics.line())
patient = {"smoke": "yes", "xray": "yes", "dysp": "no"}
answer = fit.infer("lung", patient, draws=300)
print(answer)

# %%
# Left: squares are edges of the network that the records come from.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
image = left.imshow(posterior.edges, cmap="Blues", vmin=0, vmax=1)
for child, parents in fit.parents.items():
    for parent in parents:
        place = posterior.sites.index(child), posterior.sites.index(parent)
        left.plot(*place, "s", ms=20, mfc="none", mec="tab:orange", mew=2)
names = range(len(posterior.sites))
left.set_xticks(names, posterior.sites, rotation=45, ha="right")
left.set_yticks(names, posterior.sites)
left.set(xlabel="child", ylabel="parent")
left.set_title("probability of edges", loc="left", fontsize=9)
figure.colorbar(image, ax=left, shrink=0.8)
probabilities = []
for tables in fit.draw_tables(300):
    network = gs.BayesianNetwork.from_model(fit.model)
    for k, site in enumerate(fit.sites):
        network.set_table(site, tables[fit.layout.start[k] : fit.layout.start[k + 1]].reshape(fit.table(site).shape))
    probabilities.append(gs.solve_exact(network.observe(patient)).marginals["lung"]["yes"])
right.hist(probabilities, bins=25, color="tab:blue", alpha=0.6)
exact = gs.solve_exact(true.observe(patient)).marginals["lung"]["yes"]
right.axvline(exact, color="tab:orange", label="with the true tables")
right.axvline(answer.mean["lung"]["yes"], color="k", ls="--", label="averaged over tables")
right.set(xlabel='probability of "lung" for the patient', ylabel="draws of the tables", yticks=[])
right.legend(frameon=False)
