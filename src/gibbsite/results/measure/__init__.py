"""From traces to numbers: means, standard errors, effective sizes, R-hat.

``measurement`` is the one place that turns recorded cells into numbers, ``moments`` those of sites that are numbers;
``diagnostics`` and ``ranks`` have the estimators, ``agreement`` the comparison of chains with a run.
"""
