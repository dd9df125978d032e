"""From traces to numbers: means, standard errors, effective sizes, R-hat."""
