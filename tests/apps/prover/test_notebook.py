"""The notebook of the examples: its cells run, without Jupyter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parents[3] / "examples" / "prover.ipynb"


@pytest.fixture(scope="module")
def notebook() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return made


def test_it_is_a_notebook_without_results(notebook: dict[str, Any]) -> None:
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(ids) == len(set(ids))
    for cell in notebook["cells"]:
        assert cell["cell_type"] in ("markdown", "code")
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
        assert all(line.endswith("\n") for line in cell["source"][:-1])


def test_its_cells_run(
    notebook: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
            assert capsys.readouterr().out.strip(), cell["id"]
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"answers.jsonl", "figures.json", "page.html", "table.tex"}
    assert names["whole"].queries == len(names["data"].test)
