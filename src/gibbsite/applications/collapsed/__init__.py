"""Models whose numbers are integrated out, so that only choices are left to be sampled.

``selection`` chooses the columns of a regression, with the probabilities in ``evidence``; ``mixture`` assigns points to
the components of a mixture, with the moves in ``components``. Both sample by Gibbs or by herded Gibbs, with
Rao-Blackwellised averages, which ``averages`` judges.
"""

from gibbsite.applications.collapsed.mixture import Clustering, cluster_points
from gibbsite.applications.collapsed.selection import Selection, select_variables

__all__ = ["Clustering", "Selection", "cluster_points", "select_variables"]
