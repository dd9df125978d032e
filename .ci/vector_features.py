"""Print what NumPy uses of this processor beyond what it always needs, for NPY_DISABLE_CPU_FEATURES."""

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

print(*(name for name in __cpu_dispatch__ if __cpu_features__.get(name)))
