"""Read a folder: train, test, rules, and, where they are there, valid (or dev) and domains."""

from __future__ import annotations

from pathlib import Path

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.dataset import Dataset, build
from tenfold.apps.prover.input.names import names_of
from tenfold.apps.prover.input.notice import Notice
from tenfold.apps.prover.input.read_facts import Lines, numbered, read_facts, read_text
from tenfold.apps.prover.input.rule_source import RuleSource

NEEDED = {"train": "known", "test": "asked"}
ENDS = (".txt", ".tsv", ".csv", ".parquet")


def read_folder(folder: Path, source: RuleSource | None = None) -> Dataset:
    """The data set of a folder; rules are those of its rules.txt, unless the source has others."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is no folder",
            fix="give a folder with train, test and rules, or family: for the embedded data",
        )
    notices: list[Notice] = []
    train, valid, test = (
        _facts(folder, notices, *names) for names in (("train",), ("valid", "dev"), ("test",))
    )
    listed = folder / "domain2constants.txt"
    domains = parse_domains(read_text(listed), listed.name) if listed.exists() else {}
    names = names_of(train, valid, test, domains=domains)
    usual = folder / "rules.txt"
    source = source or RuleSource()
    if source.path is None and source.mine is None and not usual.exists():
        raise InputError(
            f"{folder} has no rules.txt", fix="add it, name another by --rules, or say --mine N"
        )
    rules, odd = source.rules(train, names, usual)
    return build(folder.name, train, valid, test, rules, domains, (*notices, *odd))


def _facts(folder: Path, notices: list[Notice], *names: str) -> Lines:
    """The facts of a split. Valid may be missing, as it only filters."""
    path = _split(folder, *names)
    if path is None:
        message = f"{folder} has no {names[0]}: nothing but train and test is filtered"
        notices.append(Notice("missing", message))
        return {}
    facts, odd = read_facts(path)
    notices += odd
    if not facts and names[0] != "valid":
        message = f"{path.name} has no facts: nothing is {NEEDED[names[0]]}"
        notices.append(Notice("empty", message, path.name))
    return facts


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


def _split(folder: Path, *names: str) -> Path | None:
    for name in names:
        there = [path for end in ENDS if (path := folder / f"{name}{end}").exists()]
        if len(there) > 1:
            raise InputError(
                f"{folder} has both {there[0].name} and {there[1].name}", fix="leave one of them"
            )
        if there:
            return there[0]
    if names[0] not in NEEDED:
        return None
    raise InputError(
        f"{folder} has no {names[0]}.txt",
        fix=f"add {names[0]}.txt, or the same as .tsv, .csv or .parquet",
    )
