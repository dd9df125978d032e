"""Pages of the site that are written from what the package declares."""

from __future__ import annotations

import inspect
import re
from operator import attrgetter
from pathlib import Path
from typing import Any

import gibbsite as gs

REPOSITORY = "https://github.com/gibbsite/gibbsite/blob/main"
SPACES = {
    "": "Most used",
    "factors": "Factors",
    "models": "Models",
    "formats": "Files and other libraries",
    "kernels": "Kernels",
    "kernels.lfsr": "Numbers for quasi-Monte Carlo",
    "scans": "Scans",
    "recorders": "Recorders",
    "recorders.base": "Recorders of your own",
    "results": "Results",
    "plots": "Plots",
    "inference": "Inference",
    "exact": "Exact inference",
    "importance": "Weighted draws",
    "log_z": "Log-partition functions",
    "questions": "Questions about networks",
    "influence": "Bounds on the bias of scans",
    "learn": "Learning",
    "lab": "Experiments of papers",
    "applications": "Applications",
    "applications.bugs": "Models in BUGS language",
    "applications.entities": "Named entities",
    "applications.segmentation": "Segmentation of images",
    "graphs": "Compiled graphs",
    "random": "Random numbers in compiled functions",
    "testing": "Verification",
    "errors": "Exceptions",
}


def public_names(space: str) -> list[str]:
    """Return the public names of a namespace that are not modules, with the namespace in front."""
    home = attrgetter(space)(gs) if space else gs
    names = [name for name in home.__all__ if not inspect.ismodule(getattr(home, name))]
    return sorted(f"{space}.{name}" if space else name for name in names if not space or name not in gs.__all__)


def write_api_pages(folder: Path) -> None:
    """Write a page for each namespace, with a table of its names, one for the commands, and an index of them all.

    What stands in two namespaces is described in the first one.
    """
    folder.mkdir(exist_ok=True)
    described: list[Any] = []
    index = ["# Reference", "", "```{toctree}", ":maxdepth: 1", ""]
    for space, title in SPACES.items():
        names = [name for name in public_names(space) if attrgetter(name)(gs) not in described]
        described += [attrgetter(name)(gs) for name in names]
        if not names:
            continue
        page = space or "top"
        where = f"`gs.{space}`" if space else "`gs`, the top of the package"
        lines = [f"# {title}", "", f"Names in {where}, after `import gibbsite as gs`.", "", "```{eval-rst}"]
        lines += [".. currentmodule:: gibbsite", "", ".. autosummary::", "   :toctree: generated", ""]
        lines += [f"   {name}" for name in names]
        _write(folder / f"{page}.md", [*lines, "```", ""])
        index.append(page)
    _write(folder / "commands.md", command_help())
    index.append("commands")
    _write(folder / "index.md", [*index, "```", ""])


def command_help() -> list[str]:
    """Return the lines of a page with the whole help of every command."""
    from click.testing import CliRunner

    from gibbsite.cli import group
    from gibbsite.cli.help import commands

    lines = ["# Help of all commands", ""]
    for words, command in commands(group):
        option = "--help-all" if getattr(command, "common", None) else "--help"
        shown = CliRunner().invoke(group, [*words, option], prog_name="gibbsite", terminal_width=100)
        lines += [f"## {' '.join(('gibbsite', *words))}", "", "```text", shown.output.rstrip(), "```", ""]
    return lines


def _write(path: Path, lines: list[str]) -> None:
    """Write a file unless it has the same content: Sphinx builds what has changed."""
    text = "\n".join(lines)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def link_to_repository(app: Any, name: str, source: list[str]) -> None:
    """Let links to files outside of the site lead to the repository, and name other pages by their titles."""
    source[0] = re.sub(r"\]\(\.\./((?!examples/gallery)[^)]+)\)", rf"]({REPOSITORY}/\1)", source[0])
    source[0] = re.sub(r"\[(?:docs/)?\w+\.md\]\((\w+\.md)\)", r"[](\1)", source[0])
