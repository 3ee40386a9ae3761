"""The command `tenfold` by itself."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from tenfold.cli import app
from tenfold.cli.group import COMMANDS

run = CliRunner().invoke


def test_help_names_every_command() -> None:
    result = run(app, ["--help"])
    assert result.exit_code == 0
    assert all(name in result.output for name in COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help(name: str) -> None:
    result = run(app, [name, "--help"])
    assert result.exit_code == 0
    assert name in result.output


def test_an_unknown_command_is_said() -> None:
    result = run(app, ["disprove"])
    assert result.exit_code == 2
    assert "disprove" in result.output


def test_a_command_imports_nothing_before_it_is_called() -> None:
    """What starts slowly is not imported for --help: neither NumPy's users nor rich's tables."""
    code = (
        "import sys; import tenfold; before = set(sys.modules)\n"
        "from tenfold.cli import app\n"
        "new = set(sys.modules) - before\n"
        "assert not [m for m in new if m.startswith('tenfold.apps')], new\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
