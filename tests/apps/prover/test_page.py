"""The page: its structure by parsing, and what it does in a browser where one is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tenfold.apps.prover.evaluation import Run, evaluate
from tenfold.apps.prover.input.load import load
from tenfold.apps.prover.output.answers import Answering
from tenfold.apps.prover.report.html import page
from tenfold.apps.prover.report.page.listing import Listing
from tenfold.apps.prover.report.page.plots import BINS, bars, bin_of, shares
from tenfold.apps.prover.report.ranks import Rank
from tenfold.apps.prover.report.relations import relation_rows
from tenfold.apps.prover.settings import Settings

from .test_outputs import LOOSE

SMALL = "family:families=2"
ROLLED = {"engine": "rollout", "limit": 5, "sample": 3, "modes": ("tail",)}
VOID = {"meta", "input", "line", "polyline", "br"}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


class Parsed(HTMLParser):
    """A page's elements; that each is closed is seen on the way."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[list[str]] = []  # of each row of a table
        self.texts: list[tuple[tuple[str, ...], str]] = []  # with the elements that hold them
        self.data: Any = None
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self.open), data))
        if self.open and self.open[-1] in ("td", "button") and "tr" in self.open:
            self.cells[-1][-1] += data
        if self.tags[-1] == ("script", {"type": "application/json", "id": "data"}):
            self.data = json.loads(data)


def made(**changes: Any) -> tuple[Run, Parsed, str]:
    run = evaluate(Settings(**{"data": SMALL, "backend": "python", **changes}))
    text = page(run)
    return run, Parsed(text), text


def test_the_page_stands_alone_and_is_whole() -> None:
    run, parsed, text = made()
    assert "http" not in text
    assert "url(" not in text
    assert "@import" not in text
    for tag, attributes in parsed.tags:
        assert not {"src", "href", "srcset"} & set(attributes), tag
    ids = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert "prefers-color-scheme: dark" in text
    assert ("meta", "viewport") in [(tag, a.get("name")) for tag, a in parsed.tags]
    heads, *rows = parsed.cells[: 1 + len(relation_rows(run)) + 3]
    assert heads[:3] == ["relation", "mode", "queries"]
    assert {len(row) for row in (heads, *rows)} == {len(heads)}
    assert rows[-1][:3] == ["all", "both", f"{len(run.results):,}"]
    words = " ".join(text for _, text in parsed.texts)
    for hidden in ("policy", "beam", "overflow", "steps", "seed"):  # no closure pays heed to them
        assert f"{hidden} " not in words.partition("Relations")[0]


def _settings(text: str) -> dict[str, str]:
    return dict(re.findall(r"<dt>(.*?)</dt><dd.*?>(.*?)</dd>", text.partition("Relations")[0]))


def test_settings_are_those_that_mattered() -> None:
    usual = {"data", "modes", "engine", "score", "height", "backend", "seconds"}
    assert set(_settings(made()[2])) == usual
    shown = _settings(made(height=0, bootstrap=9)[2])
    assert set(shown) == usual | {"bootstrap", "confidence_level", "seed"}
    assert (shown["height"], shown["bootstrap"], shown["seed"]) == ("0", "9", "0")
    assert "confidence" in _settings(made(score="weight")[2])


def test_queries_and_proofs_name_rules() -> None:
    run, parsed, _ = made()
    data = parsed.data
    assert len(data["queries"]) == len(run.results)
    known = {str(fact) for fact in run.data.train}
    rules = {f"{rule.name} ({rule.weight:g}): {rule}" for rule in run.data.rules}
    assert set(data["rules"]) <= rules
    for query, result in zip(data["queries"], run.results, strict=True):
        assert query["fact"] == str(run.program.name(result.query.fact))
        assert query["realistic"] == result.found.rank.realistic
        assert (query["proof"] is None) == (result.found.height is None)
        if query["proof"] is None:
            continue
        steps = data["proofs"][query["proof"]]
        assert steps[0][0] == query["fact"]
        for fact, rule, body in steps:
            assert (rule < 0) == (fact in known)
            assert all(0 < below < len(steps) for below in body)
            if rule >= 0:
                head = data["rules"][rule].partition(": ")[2].partition("(")[0]
                assert head == fact.partition("(")[0]
    used = [row for row in parsed.cells if row and row[0] in {r.name for r in run.data.rules}]
    assert len(used) == len({r for q in data["queries"] for r in _in_proof(data, q)})


def _in_proof(data: Any, query: Any) -> set[int]:
    steps = [] if query["proof"] is None else data["proofs"][query["proof"]]
    return {rule for _, rule, _ in steps if rule >= 0}


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": 8},
        {"search": "beam"},
        {"search": "exhaustive", "height": 2, "backend": "evaluator", "batch": 16},
    ],
)
def test_ways_of_rollouts(changes: dict[str, Any]) -> None:
    _, parsed, _ = made(**{**ROLLED, **changes})
    proved = [query for query in parsed.data["queries"] if query["height"] is not None]
    assert proved
    for query in proved:
        steps = parsed.data["proofs"][query["proof"]]
        assert steps[-1] == ["no goals left: proved", ""]
        assert all(by.startswith("by ") for _, by in steps[:-1])
        if len(steps) > 1:
            assert steps[0][0] == query["fact"]


def test_a_reference_without_traces_says_so() -> None:
    _, parsed, _ = made(**{**ROLLED, "search": "exhaustive", "height": 2})
    assert all(query["proof"] is None for query in parsed.data["queries"])
    assert "another backend" in parsed.data["without"]


def test_names_are_escaped(tmp_path: Path) -> None:
    odd = "</script><b>&amp;"
    files = {"train": f"p('{odd}',c).", "valid": "", "test": f"p(c,'{odd}')."}
    for name, text in {**files, "rules": "r:1:p(x,y) -> p(y,x)"}.items():
        (tmp_path / f"{name}.txt").write_text(text)
    _, parsed, text = made(data=str(tmp_path))
    assert "<b>" not in text
    assert parsed.data["queries"][0]["fact"] == f"p(c,{odd})"


def test_no_queries_and_no_rules(tmp_path: Path) -> None:
    made(limit=0)
    for name in ("train", "valid", "test", "rules"):
        (tmp_path / f"{name}.txt").write_text("p(a,b).\n" if name == "train" else "")
    made(data=str(tmp_path))


def test_ranks_are_plotted_by_their_true_values(tmp_path: Path) -> None:
    assert [bin_of(rank) for rank in (1, 1.5, 2, 2.5, 3, 3.5)] == [*BINS[:6]]
    for rank in (Rank(b, t, 9000) for b in (0, 1, 9, 99, 2000) for t in range(6)):
        low, _, high = bin_of(rank.realistic).partition("–")
        if low != "more":
            assert float(low) <= rank.realistic <= float(high or low)
    rules = tmp_path / "loose.txt"
    rules.write_text(LOOSE)
    run, _, text = made(rules=str(rules))
    halves = sum(r.found.rank.realistic == 1.5 for r in run.results)
    assert halves > 0
    assert f">1.5</span>{_bar(text, '1.5')}<span>{halves}</span>" in text
    drawn = shares({"realistic": [1.0, 1.5, 1.5, 10.0]})
    points = drawn.partition('points="')[2].partition('"')[0].split()
    assert points == [
        "0.0,1000.0", "0.0,1000.0", "0.0,750.0", "176.1,750.0", "176.1,250.0", "1000.0,250.0",
        "1000.0,0.0", "1000.0,0.0",
    ]  # fmt: skip
    assert "3 (1 unproved)" in bars({"a": [2, 1]})
    assert shares({"realistic": []}).count("polyline") == 1


def _bar(text: str, name: str) -> str:
    after = text.partition(f">{name}</span>")[2]
    return after[: after.index("</span>") + len("</span>")]


def test_a_long_list_is_evenly_chosen() -> None:
    run, _, _ = made()
    listing = Listing(Answering(run), most=50)
    assert listing.every == -(-len(run.results) // 50)
    assert 20 < len(listing.queries) <= 50
    assert {query["mode"] for query in listing.queries} == {"head", "tail"}


# What is done in the browser: two frames, as wide as a desk's screen and as a phone's.
TRIED = """
const found = {};
for (const frame of document.querySelectorAll("iframe")) {
  const page = frame.contentDocument, root = page.documentElement, at = frame.id;
  const text = list => [...list].map(one => one.textContent);
  found[at] = {wide: root.scrollWidth};
  found[at].overflowing = text([...page.querySelectorAll(".wrap")].filter(
    one => one.scrollWidth > one.clientWidth));
  found[at].columns = [...page.querySelectorAll("th")].filter(one => one.offsetWidth).length;
  found[at].listed = page.querySelectorAll("#list details").length;
  found[at].ground = frame.contentWindow.getComputedStyle(page.body).backgroundColor;
  const head = page.querySelectorAll("table.sorts th")[2], body = page.querySelector("tbody");
  const column = () => [...body.rows].map(row => Number(row.cells[2].dataset.v));
  head.firstChild.click(); found[at].down = column();
  head.firstChild.click(); found[at].up = column();
  const order = page.getElementById("order"), kind = page.getElementById("kind");
  const tell = one => one.dispatchEvent(new Event("input"));
  kind.value = "unproved"; tell(kind);
  found[at].unproved = page.getElementById("count").textContent;
  kind.value = ""; tell(kind); order.value = "height"; tell(order);
  const first = page.querySelector("#list details"); first.open = true;
  first.dispatchEvent(new Event("toggle"));
  found[at].fact = first.querySelector("summary").firstChild.textContent.trim();
  found[at].tree = text(first.querySelectorAll(".fact"));
  found[at].by = text(first.querySelectorAll(".by"));
}
document.body.replaceChildren(Object.assign(document.createElement("pre"),
  {textContent: JSON.stringify(found)}));
"""


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_chromium(tmp_path: Path, scheme: str) -> None:
    data = load(SMALL)
    long = f"/film/{'actor/' * 6}name"
    splits = {
        name: tuple(f._replace(predicate=long) if f.predicate == "son" else f for f in facts)
        for name, facts in data.splits.items()
    }
    run = evaluate(Settings(SMALL, backend="python"), data=replace(data, **splits))
    rolled = evaluate(Settings(SMALL, backend="python", steps=8, **ROLLED))
    frames = "".join(
        f'<iframe id={name} style="width:{width}px; height:900px" '
        f'srcdoc="{escape(page(of))}"></iframe>'
        for name, width, of in (("desk", 1280, run), ("phone", 375, run), ("way", 800, rolled))
    )
    file = tmp_path / "frames.html"
    file.write_text(
        f"<!doctype html><meta charset=utf-8><body>{frames}"
        f"<script>onload = () => {{ {TRIED} }}</script>"
    )
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=5000"]
    command += [f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"]
    command += ["--window-size=1800,1000", "--dump-dom", file.as_uri()]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    parsed = Parsed(ended.stdout[ended.stdout.index("<body") :].replace("</html>", ""))
    found = json.loads(next(text for tags, text in parsed.texts if tags[-1:] == ("pre",)))
    unproved = sum(r.found.height is None for r in run.results)
    highest = max(r.found.height for r in run.results if r.found.height is not None)
    for name, width in (("desk", 1280), ("phone", 375)):
        one = found[name]
        assert one["wide"] <= width, name
        assert one["overflowing"] == [], name
        assert one["listed"] == 50
        assert one["down"] == sorted(one["down"], reverse=True) != one["up"]
        assert one["up"] == sorted(one["up"])
        assert one["unproved"] == f"{min(50, unproved)} of {unproved} shown"
        assert one["ground"] == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 24, 31)")
        assert one["tree"][0] == one["fact"]
        assert len(one["tree"]) > highest
        assert all(text.startswith("by ") for text in one["by"])
    assert found["phone"]["columns"] < found["desk"]["columns"]
    assert found["way"]["tree"][-1] == "no goals left: proved"
    assert len(found["way"]["by"]) == len(found["way"]["tree"]) - 1 > 0
