"""The command `tenfold`. What a command needs is imported when it is called."""

from tenfold.cli.group import app

__all__ = ["app"]
