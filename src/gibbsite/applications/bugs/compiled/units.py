"""Units of a sweep: the columns of their table, and the kinds of updates."""

from __future__ import annotations

# Columns of the table of units.
(
    UPDATE,
    PLACE,
    SITE,
    COUNT,
    LISTS,
    OWN,
    OWN_INSTANCE,
    BEGIN,
    MIDDLE,
    END,
    TUNE,
    EXTRA_A,
    EXTRA_B,
    EXTRA_C,
    EXTRA_D,
    EXTRA_E,
) = range(16)
UNIT_WIDTH = 16

# Kinds of updates.
(
    FORWARD,
    SLICE,
    WHOLE_SLICE,
    FINITE,
    SCALED_GAMMA,
    CONJUGATE_BETA,
    CONJUGATE_DIRICHLET,
    CONJUGATE_WISHART,
    CONJUGATE_NORMAL,
    NORMAL_BLOCK,
    SIMPLEX_SLICE,
    COMPUTE,
    PREDICTOR_BLOCK,
    CHAIN,
    SCALE,
    SHIFT,
    BATCH,
) = range(17)

# Columns of the table of groups of factors of a block of normal variables.
(GROUP_RULE, GROUP_LISTED, GROUP_FIRST, GROUP_COUNT, GROUP_SIZE, GROUP_MEMBERS, GROUP_COEFFICIENTS, GROUP_POSITIONS) = (
    range(8)
)
GROUP_WIDTH = 8

# Families of prior distributions u^(s-1) exp(-r u) between bounds, for scaled gamma updates.
GAMMA_PRIOR, EXPONENTIAL_PRIOR, CHI_SQUARED_PRIOR, UNIFORM_PRIOR, PARETO_PRIOR, FLAT_PRIOR = range(6)
