"""The command line: ``gibbsite infer | certify | scan | bugs | denoise | ner | segment | info | convert | ...``.

Data goes to stdout, messages and progress to stderr. Exit codes: 0 success, 1 failure, 2 bad arguments,
3 bad model, or a file that cannot be read or written, 4 not converged (with ``--strict``), 5 too large,
130 interrupted (Ctrl-C or SIGTERM).
"""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from contextlib import suppress
from typing import Any

import click

from gibbsite._common.leaving import raise_again
from gibbsite.cli.help import write_examples
from gibbsite.cli.outputs import ReaderGone, drop_stdout, echo, open_streams, say_what_failed, tell
from gibbsite.cli.wording import SpellingGroup

_GROUPS = {
    "Inference": {
        "infer": "Compute marginals, most probable states or log Z of a model.",
        "methods": "List the methods of infer, and when to use which.",
        "certify": "Bound the bias of Gibbs sampling without sampling.",
        "scan": "Optimise the order of updates for some sites (DoGS).",
    },
    "Models": {
        "bugs": "Sample from a model in the BUGS language.",
        "info": "Describe a model and the cost of inference on it.",
        "convert": "Convert a model to another file format.",
        "learn": "Learn a Bayesian network from a file of cases.",
        "score": "Compare a model with cases: likelihood, accuracy, calibration.",
    },
    "Applications": {
        "denoise": "Remove noise from an image.",
        "segment": "Label every pixel of an image.",
        "ner": "Find names of persons, places and organisations in text.",
        "reproduce": "Run the experiments of papers again.",
        "data": "Convert downloaded data of the papers for reproduce.",
    },
    "This installation": {
        "doctor": "Show versions, the cache, threads and missing extras.",
        "warmup": "Compile all kernels into the cache.",
        "completion": "Print a completion script for a shell.",
    },
}
_COMMANDS = {name: text for commands in _GROUPS.values() for name, text in commands.items()}
#: Modules and names of commands that have no module of their own.
_ELSEWHERE = {
    "data": ("reproduce", "data_command"),
    "learn": ("network.learn", "command"),
    "score": ("network.score", "command"),
}
_EXAMPLES = (
    "gibbsite infer alarm --observe HRBP=HIGH --observe CO=LOW",
    "gibbsite info model.uai",
    "gibbsite infer --help",
)


class _Lazy(SpellingGroup):
    """Commands are imported when they are called, so that --help is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands in groups, without importing them."""
        width = max(map(len, _COMMANDS))
        for title, commands in _GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{width}}", text) for name, text in commands.items()])
        write_examples(_EXAMPLES, formatter)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        place, attribute = _ELSEWHERE.get(name, (name, "command"))
        command: click.Command = getattr(importlib.import_module(f"gibbsite.cli.{place}"), attribute)
        raise_again()  # from here on, an interrupted command may have something to save
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; if there is none, suggest the nearest one."""
        if args and not args[0].startswith("-") and args[0] not in _COMMANDS:
            from gibbsite._common.wording import unknown

            raise click.UsageError(unknown("command", args[0], tuple(_COMMANDS)))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; tell a closed pipe from other errors."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise ReaderGone from None


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from gibbsite.sampling.plan import package_version

        echo(f"gibbsite {package_version()}")
        ctx.exit()


@click.command(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, callback=_version, expose_value=False, is_eager=True, help="Show the version.")
def group() -> None:
    """Gibbs sampling on graphical models: marginals, most probable states, log-partition functions."""


def main() -> None:
    """Run the command line; every mistake of a user gives one line and an exit code."""
    from gibbsite.errors import CheckpointError, FormatError, GibbsiteError, ModelError, TooLargeError

    open_streams()
    with suppress(ValueError):  # signals are for the main thread
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    if "_GIBBSITE_COMPLETE" in os.environ:
        importlib.import_module("gibbsite.cli.completion")
    try:
        code = group.main(prog_name="gibbsite", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        _fail("interrupted", 130)
    except click.ClickException as error:
        text = io.StringIO()
        error.show(text)
        echo(text.getvalue().rstrip("\n"), err=True)
        sys.exit(error.exit_code)
    except (TooLargeError, MemoryError) as error:
        _fail(str(error) or "out of memory; use a smaller model or --method gibbs", 5)
    except (CheckpointError, FormatError, ModelError) as error:
        _fail(str(error), 3)
    except GibbsiteError as error:
        _fail(str(error), 1)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except (BrokenPipeError, ReaderGone):  # the reader of the output has gone, as with "| head"
        drop_stdout()
        sys.exit(0)
    except OSError as error:
        if error.filename is None:
            drop_stdout()
        _fail(say_what_failed(error), 3)


def _fail(message: str, code: int) -> None:
    tell(message)
    sys.exit(code)
