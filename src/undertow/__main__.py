"""Run the command line with ``python -m undertow``."""

from undertow.cli import main

main()
