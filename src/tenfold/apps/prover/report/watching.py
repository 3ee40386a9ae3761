"""Watching: how far a run has come, as a bar on a terminal and as plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from tenfold.apps.prover.progress import Event, Progress

EVERY = 2.0  # seconds between two lines


@contextmanager
def watched(console: Console, every: float = EVERY) -> Iterator[Progress]:
    """What is to be told of events: it shows them until the end."""
    if not console.is_terminal:
        yield Lines(console, every)
        return
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(24), TextColumn("{task.fields[said]}"))
    with Progress(*columns, console=console, transient=True) as bars:
        yield Bar(bars)


class Bar:
    """A bar for each stage."""

    def __init__(self, bars: Any) -> None:
        self.bars, self.rates = bars, Rates()
        self.tasks: dict[str, Any] = {}

    def __call__(self, event: Event) -> None:
        if event.stage not in self.tasks:
            for task in self.tasks.values():
                self.bars.update(task, visible=False)
            self.tasks[event.stage] = self.bars.add_task(event.stage, total=None, said="")
        self.bars.update(
            self.tasks[event.stage],
            completed=event.done,
            total=event.total,
            said=said(event, self.rates.of(event)),
        )


class Lines:
    """A line now and then: none in a run that is over at once."""

    def __init__(self, console: Console, every: float) -> None:
        self.console, self.every = console, every
        self.rates = Rates()
        self.last = time.monotonic()

    def __call__(self, event: Event) -> None:
        rate = self.rates.of(event)
        if time.monotonic() - self.last >= self.every:
            self.last = time.monotonic()
            line = f"{event.stage}: {said(event, rate)}" if event.done else event.stage
            self.console.print(line, highlight=False, soft_wrap=True)


class Rates:
    """How much is done a second, since a stage began."""

    def __init__(self) -> None:
        self.stage, self.began, self.first = "", 0.0, 0

    def of(self, event: Event) -> float | None:
        """The rate; None until there is one."""
        now = time.monotonic()
        if event.stage != self.stage:
            self.stage, self.began, self.first = event.stage, now, event.done
        spent = now - self.began
        return (event.done - self.first) / spent if spent > 0 and event.done > self.first else None


def said(event: Event, rate: float | None = None) -> str:
    """How far a stage has come.

    >>> said(Event("closing", 1200, height=3), 400.0)
    'height 3, 1,200 facts, 400 facts a second'
    >>> said(Event("ranking", 5, 10))
    '5 of 10 queries'
    """
    unit = "facts" if event.stage in ("closing", "checking") else "queries"
    parts = [] if event.height is None else [f"height {event.height}"]
    if event.done or event.total is not None:
        of = "" if event.total is None else f" of {event.total:,}"
        parts.append(f"{event.done:,}{of} {unit}")
    if rate is not None:
        parts.append(
            f"{rate:,.0f} {unit} a second" if rate >= 10 else f"{rate:.2g} {unit} a second"
        )
    return ", ".join(parts)
