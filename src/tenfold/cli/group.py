"""Group: the commands by name, each in a module of its own that is imported when it is needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

# A command's name, the module whose `app` it is, and what it does, for --help.
COMMANDS = {
    "prove": (
        "tenfold.apps.prover.command",
        "Look for a proof of each query and its corruptions, and rank it among them.",
    ),
}


class LazyGroup(TyperGroup):
    """A group that knows its commands before it has imported them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module, _ = COMMANDS[cmd_name]
        return get_command(import_module(module).app)


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # see apps.prover.command
    help="Tenfold: a compiler and runtime for array programs in Python.",
)


@app.callback()
def main() -> None:
    """Tenfold: a compiler and runtime for array programs in Python."""
