"""Read a folder: train, valid (or dev), test, rules and, where it is there, domains."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.dataset import Dataset, build
from tenfold.apps.prover.input.read_facts import numbered, read_facts, read_text
from tenfold.apps.prover.input.read_rules import read_rules


def read_folder(
    folder: Path, rules: Path | None = None, constants: Collection[str] = ()
) -> Dataset:
    """The data set of a folder; `rules` stands for its own rules.txt."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is no folder",
            fix="give a folder with train, test and rules, or family: for the embedded data",
        )
    train, odd = read_facts(_split(folder, "train"))
    valid, odder = read_facts(_split(folder, "valid", "dev"))
    test, oddest = read_facts(_split(folder, "test"))
    known, twice = read_rules(rules or folder / "rules.txt", constants)
    listed = folder / "domain2constants.txt"
    domains = parse_domains(read_text(listed), listed.name) if listed.exists() else {}
    return build(folder.name, train, valid, test, known, domains, (*odd, *odder, *oddest, *twice))


def parse_domains(text: str, file: str) -> dict[str, tuple[str, ...]]:
    """A domain a line: its name, then its constants.

    >>> parse_domains("regions asia europe", "domain2constants.txt")
    {'regions': ('asia', 'europe')}
    """
    domains: dict[str, tuple[str, ...]] = {}
    homes: dict[str, str] = {}
    for where, line in numbered(text, file):
        name, *members = line.split()
        if name in domains:
            raise InputError(
                f"the domain {name} stands twice", where=where, fix="put its constants in one line"
            )
        for constant in members:
            home = homes.setdefault(constant, name)
            if home != name:
                raise InputError(
                    f"{constant} is in the domains {home} and {name}, so what may stand in its "
                    "place is not known",
                    where=where,
                    fix="leave it in one domain",
                )
        domains[name] = tuple(dict.fromkeys(members))
    return domains


def _split(folder: Path, *names: str) -> Path:
    for name in names:
        found = [folder / f"{name}{end}" for end in (".txt", ".tsv")]
        there = [path for path in found if path.exists()]
        if len(there) > 1:
            raise InputError(
                f"{folder} has both {there[0].name} and {there[1].name}", fix="leave one of them"
            )
        if there:
            return there[0]
    wanted = " or ".join(f"{name}.txt" for name in names)
    raise InputError(f"{folder} has no {wanted}", fix=f"add {wanted}, or the same as .tsv")
