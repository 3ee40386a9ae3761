"""Programs from the disk cache, and into it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgpack

from tenfold.backends.backend import Backend
from tenfold.backends.program import Program
from tenfold.backends.store import stores
from tenfold.cache.disk import CERTIFICATE, OBJECT, PLAN, RECORD, Disk, log
from tenfold.cache.key import CacheKey, key_of, key_with
from tenfold.cache.record import Caller, nearest, record_of
from tenfold.config import config
from tenfold.errors import FileError, ParityError, ParityWarning
from tenfold.frames import warn
from tenfold.graph import Graph, Source
from tenfold.plan.file.sections import Sections
from tenfold.seam import passed
from tenfold.version import source

if TYPE_CHECKING:
    from tenfold.plan import Plan

CODE, PLANNED, CHECKED = "code", "planned", "checked"
Options = tuple[tuple[str, str], ...]

_disks: dict[tuple[str, int], Disk] = {}


def disk() -> Disk | None:
    """The disk cache that `tn.config` names."""
    if config.cache is None:
        return None
    name = (os.fspath(config.cache), config.cache_bytes)
    found = _disks.get(name)
    if found is None:
        found = Disk(*name)
        if not source(_SourceMemory(found)):
            found.refuse("Tenfold's own code can't be read, so nothing says what made an entry")
        _disks[name] = found
    return found


class _SourceMemory:
    """Digests of Tenfold's own code, by the state of its files."""

    def __init__(self, store: Disk) -> None:
        self._store = store

    def find(self, state: str) -> str | None:
        sections = self._store.read(OBJECT, self._key(state))
        return None if sections is None else bytes(sections.raw(OBJECT)).decode("latin-1")

    def keep(self, state: str, digest: str) -> None:
        self._store.write(OBJECT, self._key(state), {OBJECT: digest.encode()})

    def _key(self, state: str) -> CacheKey:
        return CacheKey(msgpack.packb([("state of the source", state)]))


class _SharedCodeStore:
    """The store of code that is the same for every plan: that of the cache now in use."""

    def find(self, name: str) -> bytes | None:
        store = disk()
        key = key_with((("code", name),))
        sections = store.read(OBJECT, key) if store else None
        if store is None or sections is None:
            return None
        try:
            return bytes(sections.raw(OBJECT))
        except FileError as error:
            store.move_aside(OBJECT, key, error.message)
            return None

    def keep(self, name: str, data: bytes) -> None:
        store = disk()
        if store:
            store.write(OBJECT, key_with((("code", name),)), {OBJECT: data})


stores.append(_SharedCodeStore())


def options_of(strict: bool, donated: Sequence[int] = ()) -> Options:
    options = (("strict", str(strict)), ("donated", ",".join(map(str, donated))))
    return passed("options", options)


def disk_for(backend: Backend) -> Disk | None:
    """The disk cache, if a backend's code can be loaded from it."""
    return disk() if backend.unkept() is None else None


def plan_key(backend: Backend, graph: Graph, options: Options) -> CacheKey:
    """The key of the plan of a graph on this machine."""
    return key_of(graph.digest, backend, options)


def find_program(
    backend: Backend, graph: Graph, options: Options, plan: Callable[[], Plan]
) -> Program | None:
    """The program of a graph from disk. `plan` makes its plan anew, with the lines of today's
    source, should anyone look at it."""
    store = disk_for(backend)
    if store is None:
        return None
    key = plan_key(backend, graph, options)
    sections = store.read(PLAN, key)
    if sections is None:
        return None
    try:
        code = backend.read_code(sections.raw(CODE))
        why = code.unusable()
        if why is None:
            found = code.restore(lambda: _kept_plan(backend, graph, sections) or plan())
            found.checksum, found.unjudged = sections.digest, False
            return found
    except FileError as error:
        why = error.message
    store.move_aside(PLAN, key, why)
    return None


def _kept_plan(backend: Backend, graph: Graph, sections: Sections) -> Plan | None:
    """The plan in an entry, if there is one and the lines in it are those of today's source."""
    if PLANNED not in sections:
        return None
    from tenfold.plan.file.file import read_plan  # by those alone that look at a plan

    own, found = read_plan(sections.raw(PLANNED), backend.capabilities(backend.target()))
    return found if own == graph and _lines(own) == _lines(graph) else None


def _lines(graph: Graph) -> list[Source | None]:
    return [node.source for one in (*graph.scopes(), graph) for node in one.nodes]


def keep_program(
    graph: Graph, options: Options, program: Program, caller: Caller | None = None
) -> None:
    """Write a program to disk, with what it was made for."""
    backend = program.backend
    store = disk_for(backend)
    if store is None or not store.usable():
        return
    key = plan_key(backend, graph, options)
    try:
        code = backend.code_of(program, False)
    except ParityError as error:  # it goes on in this process, as it was judged
        warn(f"not kept in the cache: {error.message}", ParityWarning)
        return
    sections = {CODE: code.pack()}
    if backend.put is not None:  # a device's programs are bound by their plans
        from tenfold.plan.file.file import write_plan

        sections[PLANNED] = write_plan(program.plan, graph)
    program.checksum = store.write(PLAN, key, sections)
    if caller is not None:
        record = record_of(caller, graph.digest, backend, options)
        store.keep_record(caller.id, key, {RECORD: msgpack.packb(record)})


# A certificate lies beside its plan, and is replaced without touching it. It names the checksum of
# the entry whose code was judged: with any other it counts for nothing.


def find_certificate(graph: Graph, options: Options, program: Program) -> dict[str, Any]:
    """What checks found of a program that is on disk; empty where there was none."""
    store = disk()
    if store is None or program.checksum is None:
        return {}
    key = plan_key(program.backend, graph, options)
    sections = store.read(CERTIFICATE, key)
    if sections is None:
        return {}
    try:
        if bytes(sections.raw(CHECKED)) != program.checksum:
            log().warning("disk cache: a certificate is of other code; the plan is checked again")
            return {}
        found = sections.data(CERTIFICATE)
        if isinstance(found, dict):
            return found
        why = "a certificate that is none"
    except FileError as error:
        why = error.message
    store.move_aside(CERTIFICATE, key, why)
    return {}


def keep_certificate(
    graph: Graph, options: Options, program: Program, found: Mapping[str, Any]
) -> bool:
    """Write what checks found of a program beside it, in place of what is there; whether the
    program is on disk."""
    store = disk()
    if store is None or program.checksum is None:
        return False
    parts = {CHECKED: program.checksum, CERTIFICATE: msgpack.packb(dict(found))}
    key = plan_key(program.backend, graph, options)
    return store.write(CERTIFICATE, key, parts) is not None


def why_missing(
    backend: Backend, graph: Graph, options: Options, caller: Caller
) -> list[str] | None:
    """What differs from the nearest plan of this function, or None where there was none."""
    store = disk_for(backend)
    if store is None:
        return None
    now = record_of(caller, graph.digest, backend, options)
    return nearest([_record(sections) for sections in store.records(caller.id)], now)


def _record(sections: Sections) -> dict[str, str]:
    """What a plan was made for; empty where that is damaged: it only explains."""
    try:
        found = sections.data(RECORD)
    except FileError:
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}
