"""What nodes wait for, against looking at each pair of nodes."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenfold.backends.cuda.run.dependences import Dependences, Range

RANGE = st.tuples(st.integers(0, 30), st.integers(0, 8)).map(lambda p: (p[0], p[0] + p[1]))
NODES = st.lists(st.tuples(st.lists(RANGE, max_size=3), st.lists(RANGE, max_size=2)), max_size=12)


def meet(one: list[Range], other: list[Range]) -> bool:
    return any(a < d and c < b for a, b in one for c, d in other if a < b and c < d)


@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(NODES)
def test_who_touches_the_same_bytes_waits(nodes: list[tuple[list[Range], list[Range]]]) -> None:
    """Directly, or by way of others; and nobody waits for one that has nothing to do with it."""
    known, behind = Dependences(), list[set[int]]()
    for n, (reads, writes) in enumerate(nodes):
        after = known.add(n, reads, writes)
        behind.append(set(after).union(*(behind[m] for m in after)))
        for m, (read, written) in enumerate(nodes[:n]):
            needed = meet(writes, [*read, *written]) or meet(reads, written)
            assert not needed or m in behind[n]
            assert needed or m not in after
