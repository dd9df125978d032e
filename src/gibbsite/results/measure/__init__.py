"""From traces to numbers: means, standard errors, effective sizes, R-hat.

``measurement`` is the one place that turns recorded cells into numbers; ``diagnostics`` has the estimators,
``agreement`` the comparison of chains with a run.
"""
