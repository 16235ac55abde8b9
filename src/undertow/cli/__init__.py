"""The command line: it parses and prints, nothing else."""

from undertow.cli.app import app, main

__all__ = ["app", "main"]
