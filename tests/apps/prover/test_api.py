"""The prover from Python."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tenfold as tn
from tenfold import prover
from tenfold.apps.prover.errors import InputError

SMALL = "family:families=2"


def test_a_data_set_is_read_once_and_used_twice(tmp_path: Path) -> None:
    data = prover.load(SMALL)
    made = prover.evaluate(data, backend="python")
    again = prover.evaluate(SMALL, backend="python")
    assert made.metrics == again.metrics
    assert made.answers == again.answers
    assert made.provenance.data == again.provenance.data
    assert made.provenance.command == "tenfold.prover.evaluate('family', backend='python')"
    assert made.metrics["both"].queries == len(made.answers) == 2 * len(data.test)
    one = made.answers[0]
    whole = made.explain((one.relation, one.subject, one.object))
    assert whole == prover.explain(data, str(whole.fact), backend="python")
    assert set(made.relations) == {fact.predicate for fact in data.test}


def test_outputs_by_their_endings(tmp_path: Path) -> None:
    made = prover.evaluate(SMALL, backend="python", limit=4)
    for ending in ("json", "html", "tex", "jsonl", "csv"):
        made.write(tmp_path / f"out.{ending}")
        assert (tmp_path / f"out.{ending}").stat().st_size > 100
    kept = json.loads((tmp_path / "out.json").read_text())
    assert kept["both"]["mrr"] == made.metrics["both"].mrr
    with pytest.raises(InputError, match="ending"):
        made.write(tmp_path / "out.doc")


def test_events_and_journals(tmp_path: Path) -> None:
    stages = []
    prover.evaluate(
        SMALL,
        backend="python",
        limit=3,
        journal=tmp_path / "j",
        progress=lambda e: stages.append(e),
    )
    assert {e.stage for e in stages} == {"reading", "closing", "ranking"}
    assert len((tmp_path / "j").read_text().splitlines()) == 7


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"'hight'.*height"):
        prover.evaluate(SMALL, hight=3)
    with pytest.raises(InputError, match="engine"):
        prover.evaluate(SMALL, engine="steam")
    with pytest.raises(InputError, match="read before"):
        prover.evaluate(prover.load(SMALL), rules="other.txt")
    rolled = prover.evaluate(SMALL, engine="rollout", limit=1, sample=1, steps=1, backend="python")
    with pytest.raises(InputError, match="no closure"):
        rolled.explain("aunt(person0,person1)")


def test_frames() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    made = prover.evaluate(SMALL, backend="python")
    frame = made.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == len(made.answers)
    assert (1 / frame["realistic"]).mean() == pytest.approx(made.metrics["both"].mrr["realistic"])
    assert list(prover.evaluate(SMALL, limit=0, backend="python").to_pandas()) == list(frame)
    proof = prover.explain(SMALL, str(made.run.data.test[0]), backend="python").to_pandas()
    assert list(proof) == ["proof", "fact", "rule", "weight", "body"]


def test_frames_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    made = prover.evaluate(SMALL, backend="python", limit=1)
    with pytest.raises(ImportError, match="pip install pandas"):
        made.to_pandas()


def test_the_prover_costs_nothing_until_it_is_used() -> None:
    code = (
        "import sys, tenfold\n"
        "assert not [name for name in sys.modules if name.startswith('tenfold.apps')]\n"
        "assert 'prover' in dir(tenfold)\n"
        "assert tenfold.prover.load('family:families=1').name == 'family'\n"
        "import tenfold.prover as again\n"
        "assert again is tenfold.prover\n"
        "assert 'pandas' not in sys.modules and 'rich' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_has_its_text() -> None:
    assert tn.prover is prover
    for name in prover.__all__:
        assert getattr(prover, name).__doc__, name


def test_rules_that_are_mined_belong_to_the_data_that_is_read() -> None:
    data = prover.load("family:families=2", mine=5)
    assert len(data.rules) == 5
    assert prover.evaluate(data, limit=3, score="weight").answers
    for given in ({"mine": 5}, {"confidence": "pca"}, {"mine_to": "rules.txt"}):
        with pytest.raises(InputError, match="comes too late"):
            prover.evaluate(data, **given)
    with pytest.raises(InputError, match="mine"):
        prover.load("family:families=2", mine=0)
