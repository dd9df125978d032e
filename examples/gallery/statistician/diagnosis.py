"""
A diagnosis with a Bayesian network
===================================

The chest clinic network of Lauritzen and Spiegelhalter (1988): a patient has been to Asia and has a suspicious X-ray.
Which disease is likely, and by how much have the probabilities changed? The network is small, so the answers are
exact.
"""

import matplotlib.pyplot as plt

import gibbsite as gs

clinic = gs.example("asia")
patient = clinic.observe({"asia": "yes", "xray": "yes"})
before, after = gs.infer(clinic), gs.infer(patient)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
after_yes = {name: after.marginals[name]["yes"] for name in patient.sites}
gs.plot_model(clinic, color={**after_yes, "asia": 1.0, "xray": 1.0}, ax=left)
left.set_title('shade: probability of "yes" given the evidence', loc="left", fontsize=9)
diseases = ["tub", "lung", "bronc"]
gs.plot_marginals(after, diseases, reference=before, ax=right)
right.set_title("bars: given the evidence; diamonds: before", loc="left", fontsize=9)
right.get_legend().remove()

# %%
# The same question on the command line is ``gibbsite infer asia --observe asia=yes --observe xray=yes``.
print(after.summary())
