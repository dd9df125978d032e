"""Tests mirror the source: a module is tested in the file of its name, in the folder of its name."""

from __future__ import annotations

from pathlib import Path

import gibbsite

TESTS = Path(__file__).parent
SOURCE = Path(gibbsite.__file__).parent
#: Folders of tests that are not about one package of the source.
FREE = ("benchmarks", "campaigns", "proofs")
#: Files that cross modules, and what they cross.
CROSSING = {
    "applications/bugs/test_examples.py": "The classic examples of the BUGS language have the published posterior means.",
    "applications/bugs/test_updates.py": "Every update of models in the BUGS language keeps the right distribution.",
    "applications/bugs/test_wrong_programs.py": "Wrong programs and data are refused in a sentence.",
    "applications/test_untrusted_models.py": "The saved models of all applications are read, or refused in a sentence.",
    "cli/test_commands.py": "A new user tries every command and makes mistakes.",
    "cli/test_printed_answers.py": "All commands print answers that are safe to show on a terminal.",
    "cli/test_signals.py": "All commands react to SIGTERM and Ctrl-C in the same way.",
    "cli/test_stored_models.py": "All commands read models that are stored on disk.",
    "cli/test_wrong_arguments.py": "All commands refuse wrong arguments before they start.",
    "common/test_golden_files.py": "Files of every stored format that earlier versions wrote can be read.",
    "formats/test_damaged_files.py": "The readers of all formats refuse damaged files.",
    "formats/test_stored_potts.py": "Stored Potts models are written, read, sampled and answered.",
    "inference/exact/test_interpreted.py": "Exact inference gives the same numbers with and without the compiler.",
    "lab/test_experiments.py": "Every experiment runs in quick mode.",
    "models/test_pickled_models.py": "Models of every class survive pickling.",
    "models/test_wrong_types.py": "All functions that build models refuse arguments of wrong types.",
    "numba/test_generic_functions.py": "Generic functions choose the same implementation in Python and in compiled code.",
    "numba/random/test_keyed_random.py": "The keyed generator and the batched updates that choose its counters.",
    "results/plots/test_every_plot.py": "Plots of results draw what they say, on small and large models, anywhere.",
    "results/test_errors_in_every_view.py": "Standard errors are the same in tables, texts, pages and comparisons.",
    "results/test_kernel_counts_in_every_view.py": "Every view of a result shows what its kernel counted.",
    "results/test_kernel_warnings_in_every_view.py": "Every view of a result shows the warnings of its kernel.",
    "results/verdict/test_heavy_tails.py": "Runs whose numbers have heavy tails are judged by ranks, and wrong ones are refused.",
    "results/verdict/test_same_seed.py": "The same seeds give the same verdict, whatever clocks say.",
    "results/verdict/test_unreached.py": "Runs on models with zeros report states and regions that chains could not enter.",
    "sampling/executors/test_dask_partitions.py": "Partitions run on workers of Dask as they do on threads.",
    "sampling/executors/test_failures.py": "Runs survive failing workers, or end with a checkpoint and a sentence.",
    "sampling/executors/test_worker_counts.py": "Results do not depend on the number of workers of Dask.",
    "sampling/test_bad_input.py": "Every argument of a run is refused in a sentence if it is wrong.",
    "sampling/test_every_layout.py": "Runs in every layout resume, use threads and record alike.",
    "sampling/test_interrupt.py": "Ctrl-C and SIGTERM end runs after a block, and a second one at once.",
    "sampling/test_time_limit.py": "A time limit holds for set-up, sampling, checks and results together.",
    "sampling/test_untrusted_checkpoints.py": "Checkpoints from elsewhere are continued, or refused in a sentence.",
}


def _files() -> list[str]:
    found = (path.relative_to(TESTS) for path in TESTS.rglob("test_*.py"))
    return sorted(path.as_posix() for path in found if len(path.parts) > 1 and path.parts[0] not in FREE)


def _has_counterpart(file: str) -> bool:
    """Tell whether a module or a package of the name is in the same place of the source.

    Leading underscores do not count, and ``kernels/test_kernels.py`` may test the package ``kernels``.
    """
    *folders, name = Path(file).with_suffix("").parts
    name = name.removeprefix("test_")
    place = SOURCE.joinpath(*({"numba": "_numba", "common": "_common"}.get(folder, folder) for folder in folders))
    names = (name, f"_{name}")
    return (folders[-1] == name and place.is_dir()) or any(
        (place / f"{n}.py").is_file() or (place / n / "__init__.py").is_file() for n in names
    )


def test_every_test_file_is_named_after_what_it_tests() -> None:
    lost = [file for file in _files() if file not in CROSSING and not _has_counterpart(file)]
    assert lost == [], "move these beside the module they test, or say in CROSSING what they cross"


def test_the_list_of_crossing_files_is_current() -> None:
    assert sorted(set(CROSSING) - set(_files())) == []
    assert [file for file in CROSSING if _has_counterpart(file)] == []
