"""The kernels of the library: each is registered in its own module, and all lists are derived.

These are the public names of :mod:`gibbsite.kernels`, the methods of :func:`gibbsite.infer` and of the
command line, what ``info`` and ``warmup`` list, the candidates of :func:`gibbsite.recommend`, the default
kernel of each graph kind, and the kernels that the conformance tests verify.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from gibbsite._common.arguments import checked_constructor
from gibbsite._common.loading import import_downwards, load_modules, read_declarations
from gibbsite.errors import IncompatibleError

if TYPE_CHECKING:
    from gibbsite.graphs.graph import Graph
    from gibbsite.kernels.base import Kernel

Arguments = Mapping[str, Any]
K = TypeVar("K", bound="type[Kernel]")


@dataclass(frozen=True)
class Registration:
    """The declaration of a kernel.

    Attributes
    ----------
    kernel : type
        The class.
    proof : sequence of dict, or str
        Arguments of the instances that the conformance tests verify, small enough for models of four sites;
        for kernels that these tests cannot verify, the file with tests that do.
    methods : dict
        Names on the command line, each with the tasks that :func:`gibbsite.infer` lets it answer.
    arguments : dict
        By name of a method, the arguments of the kernel that differ from the defaults.
    default_for : tuple of str
        Kinds of graphs on which it is the default kernel; "discrete" stands for all kinds of factor graphs.
    recommend : dict
        By name, arguments of the instances that :func:`gibbsite.recommend` tries.
    """

    kernel: type[Kernel]
    proof: Sequence[Arguments] | str
    methods: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    arguments: Mapping[str, Arguments] = field(default_factory=dict)
    default_for: tuple[str, ...] = ()
    recommend: Mapping[str, Arguments] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.kernel.__name__

    @property
    def family(self) -> str:
        """The folder of :mod:`gibbsite.kernels` that contains the kernel; for other kernels, the module."""
        return self.kernel.__module__.removeprefix("gibbsite.kernels.").partition(".")[0]

    def example(self) -> Kernel | None:
        """Return the kernel with typical arguments, for figures about it."""
        if self.recommend:
            return self.kernel(**next(iter(self.recommend.values())))
        return next(iter(self.proof_instances()), None)

    def proof_instances(self) -> tuple[Kernel, ...]:
        """Return the kernels that the conformance tests verify; none if a file of tests verifies the kernel."""
        return () if isinstance(self.proof, str) else tuple(self.kernel(**given) for given in self.proof)


_REGISTERED: dict[str, Registration] = {}


def register(
    *,
    proof: Sequence[Arguments] | str,
    methods: Mapping[str, Iterable[str]] | None = None,
    arguments: Mapping[str, Arguments] | None = None,
    default_for: Iterable[str] = (),
    recommend: Mapping[str, Arguments] | None = None,
) -> Callable[[K], K]:
    """Register a kernel; the arguments are the attributes of :class:`Registration`.

    ``methods`` and ``default_for`` must be written as literals, because they are read from the source: only
    kernels that are used are imported.
    """

    def add(kernel: K) -> K:
        checked_constructor(kernel)
        _REGISTERED[f"{kernel.__module__}.{kernel.__name__}"] = Registration(
            kernel,
            proof,
            {name: tuple(tasks) for name, tasks in (methods or {}).items()},
            arguments or {},
            tuple(default_for),
            recommend or {},
        )
        return kernel

    return add


def registered_kernels() -> tuple[Registration, ...]:
    """Return all registrations: those of the default kernels first, then by family and name.

    Examples
    --------
    >>> [one.name for one in registered_kernels() if one.family == "gaussian"]
    ['GaussianGibbs', 'BlockedGaussianGibbs', 'ExactGaussian']
    """
    load_modules("gibbsite.kernels")
    return loaded_kernels()


def loaded_kernels() -> tuple[Registration, ...]:
    """Return the registrations of the kernels whose modules are loaded, in the same order."""
    return tuple(sorted(_REGISTERED.values(), key=lambda one: (not one.default_for, one.family, one.name)))


def make_kernel(method: str) -> Kernel:
    """Return the kernel of a method of :func:`gibbsite.infer`.

    Examples
    --------
    >>> make_kernel("gibbs")
    Gibbs(rule='heat-bath')
    """
    found = _load("methods", method)
    assert found is not None, method
    return found.kernel(**found.arguments.get(method, {}))


def default_kernel(graph: Graph) -> Kernel:
    """Return the kernel that runs on a graph by default."""
    found = _load("default_for", "discrete" if graph.discrete else graph.kind)
    if found is None:
        raise IncompatibleError(f"No kernel is the default for {graph.kind} graphs; name one.")
    return found.kernel()


def _load(field: str, value: str) -> Registration | None:
    """Return the kernel that declares a method or a kind of graph; import its module if the library has it."""
    for given in read_declarations("kernels"):
        if value in given.get(field, ()):
            import_downwards(given["module"])
    return next((one for one in _REGISTERED.values() if value in getattr(one, field)), None)
