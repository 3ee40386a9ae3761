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


@pytest.mark.parametrize("command", [[], *([name] for name in sorted(COMMANDS))])
def test_help_needs_neither_numpy_nor_what_draws_tables(command: list[str]) -> None:
    code = (
        "import sys\n"
        "from tenfold.cli import app\n"
        f"app([*{command}, '--help'], prog_name='tenfold', standalone_mode=False)\n"
        "heavy = ('numpy', 'rich', 'llvmlite', 'tenfold.api', 'tenfold.apps.prover.evaluation')\n"
        "assert not set(heavy) & set(sys.modules), set(heavy) & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_package_runs_as_the_command() -> None:
    command = [sys.executable, "-m", "tenfold", "--help"]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "Usage: tenfold" in found.stdout
    assert all(name in found.stdout for name in COMMANDS)
