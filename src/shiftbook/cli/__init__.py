"""The command line: one module a verb, loaded when it is called. Stdout is data, stderr is for people."""

from shiftbook.cli.app import main

__all__ = ["main"]
