"""Run the command line as ``python -m gibbsite.cli``."""

from gibbsite.cli import main

main()
