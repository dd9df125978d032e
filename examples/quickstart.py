"""A chest clinic, after Lauritzen and Spiegelhalter (1988): what explains the shortness of breath?

Run: python examples/quickstart.py
"""

import gibbsite as gs

sites = ["asia", "smoke", "tub", "lung", "bronc", "xray", "dysp"]
clinic = gs.FactorGraph(
    {site: ["yes", "no"] for site in sites},
    [
        # each table: probabilities of the last site given the others
        (("asia",), [0.01, 0.99]),
        (("smoke",), [0.5, 0.5]),
        (("asia", "tub"), [[0.05, 0.95], [0.01, 0.99]]),
        (("smoke", "lung"), [[0.1, 0.9], [0.01, 0.99]]),
        (("smoke", "bronc"), [[0.6, 0.4], [0.3, 0.7]]),
        (("lung", "tub", "xray"), [[[0.98, 0.02], [0.98, 0.02]], [[0.98, 0.02], [0.05, 0.95]]]),
        (
            ("bronc", "lung", "tub", "dysp"),
            [
                [[[0.9, 0.1], [0.9, 0.1]], [[0.9, 0.1], [0.8, 0.2]]],
                [[[0.7, 0.3], [0.7, 0.3]], [[0.7, 0.3], [0.1, 0.9]]],
            ],
        ),
    ],
    directed=True,
)

patient = clinic.observe({"dysp": "yes", "smoke": "yes"})
result = gs.sample(patient, gs.Gibbs(), sweeps=50_000, rng=1)
print(result.summary())

exact = gs.solve_exact(patient)
print()
print("against the exact answer:")
print(gs.compare(result, exact))
