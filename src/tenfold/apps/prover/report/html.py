"""HTML: a run as one page that needs nothing else: figures, plots, and every query's proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from html import escape
from typing import Any

from tenfold.apps.prover.evaluation import Run
from tenfold.apps.prover.output.answers import Answering
from tenfold.apps.prover.report.page.listing import Listing
from tenfold.apps.prover.report.page.metrics import interval_parts, rank_table, seed_parts
from tenfold.apps.prover.report.page.plots import BINS, bars, bin_of, shares
from tenfold.apps.prover.report.page.script import SCRIPT
from tenfold.apps.prover.report.page.style import STYLE
from tenfold.apps.prover.report.page.tables import Column, figures_table, table
from tenfold.apps.prover.report.ranks import LEVELS
from tenfold.apps.prover.report.summary import by_mode
from tenfold.apps.prover.report.table import limits
from tenfold.apps.prover.settings import Settings

RULES = 500  # rows of the table of rules


def page(
    run: Run,
    answering: Answering | None = None,
    relations: int | None = None,
    spread: Mapping[str, Any] | None = None,
) -> str:
    """The page; `spread` is what the figures of several seeds come to."""
    listing = Listing(answering or Answering(run))
    parts = [
        f"<h1>{escape(run.data.name)}</h1>",
        f"<p class=soft>tenfold prove, {escape(run.provenance.date)}</p>",
        _cards(run),
        "<h2>Settings that mattered</h2>",
        _settings(run),
        *(f"<p>{escape(line)}</p>" for line in limits(run)),
        _notices(run),
        "<h2>Relations</h2>",
        "<label class=narrow><input type=checkbox id=columns> all columns</label>",
        figures_table(run, relations),
        "<p class=soft>Hits are by the realistic rank. A click on a head sorts.</p>",
        "<h2>Ranks against chance</h2>",
        rank_table(by_mode(run)),
        *interval_parts(run),
        *seed_parts(spread),
        *_plots(run),
        *_rules(listing),
        *_queries(listing),
        "<h2>Where the figures come from</h2>",
        _origin(run),
    ]
    title = f"tenfold prove: {escape(run.data.name)}"
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head><body>{''.join(parts)}"
        f'<script type="application/json" id=data>{listing.as_json()}</script>'
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def _cards(run: Run) -> str:
    made = by_mode(run)["both"]
    shown: dict[str, Any] = {"MRR, realistic": made["mrr"]["realistic"]}
    shown |= {f"Hits@{level}": made["hits"][str(level)]["realistic"] for level in LEVELS}
    cells = {name: "–" if v is None else f"{v:.4f}" for name, v in shown.items()}
    unproved = made["queries"] - made["proved"]
    cells |= {"rankings": f"{made['queries']:,}", "unproved": f"{unproved:,}"}
    cards = "".join(
        f"<div class=card><strong>{value}</strong><span>{escape(name)}</span></div>"
        for name, value in cells.items()
    )
    return f"<div class=cards>{cards}</div>"


def _settings(run: Run) -> str:
    """What the engine pays heed to; what is not as usual stands out."""
    usual = Settings(run.settings.data).as_dict()
    rows = []
    for name, value in run.settings.heeded().items():
        given = "" if value == usual[name] or name == "data" else " class=set"
        said = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        rows.append(f"<dt>{escape(name)}</dt><dd{given}>{escape(said)}</dd>")
    spent = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in run.seconds.items())
    rows.append(f"<dt>seconds</dt><dd>{escape(spent)}</dd>")
    return f"<dl>{''.join(rows)}</dl>"


def _notices(run: Run) -> str:
    if not run.data.notices:
        return ""
    lines = "".join(f"<li>{escape(str(notice))}</li>" for notice in run.data.notices[:100])
    count = len(run.data.notices)
    said = f"{count:,} notice{'s' if count > 1 else ''} about the data"
    return f"<details><summary>{said}</summary><ul>{lines}</ul></details>"


def _plots(run: Run) -> list[str]:
    proved: dict[str, list[int]] = {name: [0, 0] for name in BINS}
    for result in run.results:
        proved[bin_of(result.found.rank.realistic)][result.found.height is None] += 1
    heights = Counter(r.found.height for r in run.results)
    known = sorted(height for height in heights if height is not None)
    bad = '<span class="key bad"></span>'
    kinds = ("optimistic", "realistic", "pessimistic")
    return [
        "<h2>Ranks</h2>",
        shares({k: [float(getattr(r.found.rank, k)) for r in run.results] for k in kinds}),
        f"<p class=soft>Realistic ranks <span class=key></span>proved {bad}unproved</p>",
        bars({name: counts for name, counts in proved.items() if sum(counts)}),
        "<h2>Heights of the queries' proofs</h2>",
        bars({f"height {h}": [heights[h]] for h in known} | {"none": [0, heights[None]]}),
        "<h2>How the searches ended</h2>",
        "<p class=soft>Those for queries and candidates together.</p>",
        bars({o.name: [n] for o, n in sorted(run.outcomes.items())}),
    ]


def _rules(listing: Listing) -> list[str]:
    columns = [Column("rule", text=True), Column("weight"), Column("proofs")]
    columns.append(Column("text", text=True))
    rows = [
        (rule.name, (f"{rule.weight:g}", repr(rule.weight)), count, str(rule))
        for rule, count in listing.uses.most_common(RULES)
    ]
    count = len(listing.answering.rules)
    more = f" The {RULES} used most are shown." if len(listing.uses) > RULES else ""
    part = "" if listing.every == 1 else " Of the rankings that are listed below."
    return [
        "<h2>Rules used</h2>",
        f"<p class=soft>{len(listing.uses):,} of {count:,} rules are used in the proofs of "
        f"queries; proofs are counted by ranking.{part}{more}</p>",
        table(columns, rows),
    ]


def _queries(listing: Listing) -> list[str]:
    total, shown = len(listing.answering.run.results), len(listing.queries)
    part = (
        f"{total:,} rankings."
        if listing.every == 1
        else f"{shown:,} of {total:,} rankings, evenly chosen; <code>--queries</code> has all."
    )
    options = {
        "mode": {"": "head and tail", "head": "head", "tail": "tail"},
        "kind": {"": "all", "proved": "proved", "unproved": "unproved", "beaten": "beaten"},
        "order": {
            "asked": "as asked",
            "worst": "worst rank first",
            "best": "best rank first",
            "height": "highest proof first",
        },
    }
    choices = "".join(
        f'<select id={name} aria-label="{name}">'
        + "".join(f'<option value="{value}">{text}</option>' for value, text in some.items())
        + "</select>"
        for name, some in options.items()
    )
    return [
        "<h2>Queries</h2>",
        f"<p class=soft>{part} Open one to see its rank, the candidates that beat it, and its "
        "proof.</p>",
        "<div class=tools><input type=search id=ask placeholder='part of a query' "
        f"aria-label='part of a query'>{choices}</div>",
        "<noscript><p>The list needs JavaScript; <code>--queries</code> writes it to a file.</p>"
        "</noscript>",
        "<p class=soft id=count></p><div id=list></div>",
        "<button class=more id=more type=button hidden>more</button>",
    ]


def _origin(run: Run) -> str:
    made = run.provenance.as_dict()
    files = made.pop("files")
    rows = {"facts, SHA-256": made.pop("data"), "rules, SHA-256": made.pop("rules"), **made}
    rows |= {f"{name}, SHA-256": digest for name, digest in files.items()}
    cells = "".join(
        f"<dt>{escape(name)}</dt><dd class=mono>{escape(str(value))}</dd>"
        for name, value in rows.items()
    )
    return f"<dl>{cells}</dl>"
