"""Public names of this package, a line each; they are loaded when they are first used."""

from gibbsite.applications.bugs.explain import Conditional as Conditional
from gibbsite.applications.bugs.kernel import BugsGibbs as BugsGibbs
from gibbsite.applications.bugs.language.data import read_inits as read_inits
from gibbsite.applications.bugs.language.data import read_values as read_values
from gibbsite.applications.bugs.model import BugsModel as BugsModel
from gibbsite.applications.bugs.model import read_bugs as read_bugs
