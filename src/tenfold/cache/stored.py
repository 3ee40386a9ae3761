"""Programs from the disk cache, and into it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgpack

from tenfold.backends.cpu.loader import route
from tenfold.backends.cpu.target import host_target
from tenfold.cache.disk import Disk, certificate_of
from tenfold.cache.record import Caller, key_of, nearest, record_of
from tenfold.config import config
from tenfold.errors import FileError
from tenfold.execute import Program
from tenfold.execute.faults import planted
from tenfold.execute.fixed import stores
from tenfold.execute.native import read_native
from tenfold.execute.restored import Restored, unusable
from tenfold.graph import Graph
from tenfold.plan import Plan
from tenfold.plan.sections import pack

CODE, CERTIFICATE = "code", "certificate"
Options = tuple[tuple[str, str], ...]

_disks: dict[tuple[str, int], Disk] = {}


def disk() -> Disk | None:
    """The disk cache that `tn.config` names."""
    if config.cache is None or route() != "elf":  # code is not loaded from files elsewhere
        return None
    name = (os.fspath(config.cache), config.cache_bytes)
    found = _disks.get(name)
    if found is None:
        found = _disks[name] = Disk(*name)
    return found


class _Fixed:
    """The store of code that is the same for every plan: that of the cache now in use."""

    def find(self, name: str) -> bytes | None:
        found = disk()
        return found.find(name) if found else None

    def keep(self, name: str, data: bytes) -> None:
        found = disk()
        if found:
            found.keep(name, data)


stores.append(_Fixed())


def options_of(strict: bool, donated: Sequence[int] = ()) -> Options:
    fault = planted()  # what a test spoiled on purpose is never found by others
    return (
        ("strict", str(strict)),
        ("donated", ",".join(map(str, donated))),
        *([("fault", " ".join(fault))] if fault else []),
    )


def find_program(
    graph: Graph, options: Options, plan: Callable[[], Plan]
) -> tuple[Program, dict[str, Any]] | None:
    """The program of a graph from disk, with its certificate. `plan` makes its plan anew, with
    the lines of today's source, should anyone look at it."""
    store = disk()
    if store is None:
        return None
    host = host_target()
    key = key_of(graph.digest, host, options)
    sections = store.read(f"{key}.plan")
    if sections is None:
        return None
    try:
        native = read_native(sections.raw(CODE))
        why = unusable(native, host)
        if why is not None:
            store.move_aside(f"{key}.plan", why)
            return None
        return Restored(native, plan), certificate_of(sections)
    except FileError as error:
        store.move_aside(f"{key}.plan", error.message)
        return None


def keep_program(
    graph: Graph,
    options: Options,
    program: Program,
    certificate: Mapping[str, Any] | None = None,
    caller: Caller | None = None,
) -> None:
    """Write a program to disk, with what it was made for."""
    store = disk()
    if store is None or not store.usable():
        return
    from tenfold.execute.file import native_of  # what only writes, a hit does without

    host = host_target()
    key = key_of(graph.digest, host, options)
    sections = {
        CODE: native_of(program, whole=False).pack(),
        CERTIFICATE: msgpack.packb(dict(certificate or {})),
    }
    store.write(f"{key}.plan", pack(sections, compress=False))
    if caller is not None:
        store.keep_record(caller.id, key, record_of(caller, graph.digest, host, options))


def certify(graph: Graph, options: Options, certificate: Mapping[str, Any]) -> bool:
    """Put a certificate into the entry of a graph, in place of the one it has; whether there is
    such an entry."""
    store = disk()
    if store is None:
        return False
    name = f"{key_of(graph.digest, host_target(), options)}.plan"
    sections = store.read(name)
    if sections is None:
        return False
    parts = {part: bytes(sections.raw(part)) for part in sections.names}
    parts[CERTIFICATE] = msgpack.packb(dict(certificate))
    return store.write(name, pack(parts, compress=False))


def why_missing(graph: Graph, options: Options, caller: Caller) -> list[str] | None:
    """What differs from the nearest plan of this function, or None where there was none."""
    store = disk()
    if store is None:
        return None
    now = record_of(caller, graph.digest, host_target(), options)
    return nearest(store.records(caller.id), now)
