"""Run the command line as ``gibbsite`` or ``python -m gibbsite``."""

import sys


def main() -> None:
    """Run the command line; an interrupt while it is still being loaded ends it as any other does."""
    try:
        from gibbsite._common.leaving import leave_at_once

        leave_at_once()
        from gibbsite.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("gibbsite: interrupted\n")
        sys.exit(130)
    finally:
        # A KeyboardInterrupt that passed through exec() of a text, as the standard library uses it to make
        # classes, leaves a mark by which Python ends itself with SIGINT instead of the exit code, although
        # the exception was handled. The next such exec() takes the mark away.
        exec("")


if __name__ == "__main__":
    main()
