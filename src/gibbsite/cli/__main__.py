"""Run the command line as ``python -m gibbsite.cli``."""

from gibbsite.cli import main

if __name__ == "__main__":
    main()
