"""Run the command line as ``python -m gibbsite``."""

from gibbsite.cli import main

if __name__ == "__main__":
    main()
