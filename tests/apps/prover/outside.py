"""What clingo and SWI-Prolog say of a program. Names are p0, p1, … and c0, c1, …"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from tenfold.apps.prover.input.program import Program, Triple


def _text(atom: Triple, height: str = "") -> str:
    """An atom as both write it; for clingo with the height as a third argument."""
    s, o = (f"V{-t}" if t < 0 else f"c{t}" for t in atom[1:])
    return f"p{atom[0]}({s},{o}{height})"


def by_clingo(clingo: Any, program: Program, limit: int) -> dict[Triple, int]:
    """The height of all that follows, up to a limit: in round h, what holds at h - 1 or before."""
    lines = [f"{_text(f, ',0')}." for f in program.facts]
    lines += [f"p{p}(X,Y,H+1) :- p{p}(X,Y,H), H < {limit}." for p in range(len(program.predicates))]
    for head, body in program.clauses:
        steps = [f"step(H), H < {limit}", *(_text(a, ",H") for a in body)]
        lines.append(f"{_text(head, ',H+1')} :- {', '.join(steps)}.")
    lines.append(f"step(0..{limit}).")
    control = clingo.Control(logger=lambda *_: None)
    control.add("base", [], "\n".join(lines))
    control.ground([("base", [])])
    heights: dict[Triple, int] = {}
    for atom in control.symbolic_atoms:
        if atom.symbol.name == "step" or not atom.is_fact:
            continue
        s, o, h = atom.symbol.arguments
        key = (int(atom.symbol.name[1:]), int(s.name[1:]), int(o.name[1:]))
        heights[key] = min(h.number, heights.get(key, limit))
    return heights


def by_prolog(swipl: str, program: Program, folder: Path) -> set[Triple]:
    """All that follows, by tabling."""
    names = [f"p{p}" for p in range(len(program.predicates))]
    lines = [":- style_check(-singleton)."]
    lines += [f":- table {p}/2.\n:- discontiguous {p}/2." for p in names]
    lines += [f"{_text(f)}." for f in program.facts]
    for head, body in program.clauses:
        lines.append(f"{_text(head)} :- {', '.join(_text(a) for a in body) or 'true'}.")
    lines += [f"{p}(_,_) :- fail." for p in names]
    said = "\n".join(f"forall({p}(X{p},Y{p}), (write({p}-X{p}-Y{p}), nl))," for p in names)
    lines.append(f":- initialization(({said} halt)).")
    file = folder / "program.pl"
    file.write_text("\n".join(lines))
    result = subprocess.run(
        [swipl, "-q", str(file)], capture_output=True, text=True, timeout=120, check=True
    )
    found: set[Triple] = set()
    for line in result.stdout.split():
        p, s, o = (int(name[1:]) for name in line.split("-"))
        found.add((p, s, o))
    return found
