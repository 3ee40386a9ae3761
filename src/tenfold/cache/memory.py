"""Plans in memory: found by graph and options, bounded, the least recently used dropped."""

from __future__ import annotations

import threading
from collections import OrderedDict

from tenfold.execute import Program, plan_for
from tenfold.graph import Graph
from tenfold.stats import count, timed

CAPACITY = 512


class Plans:
    """Programs by what they were made of.

    A graph is looked up by its digest and then compared. Whoever runs a program that is dropped
    here keeps it alive; it is made again when it is asked for again.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.capacity = capacity
        self._held: OrderedDict[tuple[str, bool], Program] = OrderedDict()
        self._lock = threading.RLock()
        self._making: dict[tuple[str, bool], threading.Lock] = {}

    def __len__(self) -> int:
        return len(self._held)

    def get(self, graph: Graph, *, strict: bool = False) -> Program:
        """The program of a graph, made if it is not here."""
        key = (graph.digest, strict)
        found = self._find(key, graph)
        if found is not None:
            return found
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:  # one thread makes it, the others wait and find it
            found = self._find(key, graph)
            if found is None:
                count("cache_misses")
                with timed("plan"):
                    plan = plan_for(graph)
                count("plans")
                found = Program(plan, strict=strict)
                with self._lock:
                    self._held[key] = found
                    while len(self._held) > self.capacity:
                        self._held.popitem(last=False)
            with self._lock:
                self._making.pop(key, None)
        return found

    def _find(self, key: tuple[str, bool], graph: Graph) -> Program | None:
        with self._lock:
            found = self._held.get(key)
            if found is None or found.plan.graph != graph:
                return None
            self._held.move_to_end(key)
            count("cache_hits")
            return found

    def clear(self) -> None:
        with self._lock:
            self._held.clear()


plans = Plans()
