"""Candidates: a sample of them, drawn once, kept in a file and shared by all that read it.

A line for each query: its mode, the query, and the candidates, by name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.program import Program
from tenfold.apps.prover.input.queries import Query, sample
from tenfold.apps.prover.input.read_facts import numbered, read_text


def kept_sample(
    path: Path, asked: Sequence[Query], program: Program, count: int | None, seed: int
) -> list[Query]:
    """The queries with the candidates of a file; one that is not there is drawn and written."""
    if path.exists():
        return _read(path, asked, program, count)
    if count is None:
        raise InputError(
            f"{path} is not there yet", fix="say with --sample how many candidates to draw"
        )
    drawn = sample(asked, count, seed)
    lines = [
        json.dumps(
            {
                "mode": query.mode,
                "query": program.name(query.fact),
                "candidates": [program.constants[c] for c in query.candidates],
            }
        )
        for query in drawn
    ]
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        os.replace(partial, path)
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror or error}", fix="give a file that can be written"
        ) from None
    return drawn


def _read(path: Path, asked: Sequence[Query], program: Program, count: int | None) -> list[Query]:
    place = {name: i for i, name in enumerate(program.constants)}
    kept: dict[tuple[str, ...], tuple[str, list[str]]] = {}
    for where, line in numbered(read_text(path), path.name):
        try:
            made = json.loads(line)
            kept[made["mode"], *made["query"]] = (where, made["candidates"])
        except (ValueError, KeyError, TypeError):
            raise InputError(
                "no query with its mode and candidates", where=where, fix="draw the sample anew"
            ) from None
    result = []
    for query in asked:
        name = program.name(query.fact)
        if (query.mode, *name) not in kept:
            raise InputError(
                f"{path} has no candidates for {name}, {query.mode}",
                fix="give the file of this data set, or another name to draw anew",
            )
        where, names = kept[query.mode, *name]
        unknown = [c for c in names if place.get(c) not in query.pool - query.known]
        if unknown:
            raise InputError(
                f"{unknown[0]} is no candidate for {name}, {query.mode}",
                where=where,
                fix="give the file of this data set, or another name to draw anew",
            )
        if count is not None and len(names) != min(count, len(query.pool - query.known)):
            raise InputError(
                f"{len(names)} candidates for {name}, not {count}",
                where=where,
                fix="leave --sample out, or give another file",
            )
        pool = frozenset(place[c] for c in names)
        result.append(Query(query.fact, query.mode, pool, query.known))
    return result
