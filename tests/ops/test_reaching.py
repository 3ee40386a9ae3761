"""The reference of reach against sets of plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.ops import TABLE


def line(step: list[int], row: int, bits: Any, tables: Any, extent: int) -> set[int]:
    number, low, high = step
    if low < 0:
        if not 0 <= number < len(bits):
            return set()
        words = [int(word) for word in bits[number][row]]
        return {c for c in range(extent) if words[c // 64] >> c % 64 & 1}
    found: set[int] = set()
    for lines, ranks, starts, items in tables[low : max(low, high)]:
        if not 0 <= number < len(lines):
            continue
        word = [int(lines[number][row // 64]) >> place & 1 for place in range(64)]
        if not word[row % 64]:
            continue
        last = len(starts) - 1
        at = min(max(int(ranks[number][row // 64]), 0), last) + sum(word[: row % 64])
        ends = (int(starts[min(n, last)]) for n in (at, at + 1))
        first, past = (min(max(n, 0), len(items)) for n in ends)
        found |= {int(c) for c in items[first:past]}
    return {c for c in found if 0 <= c < extent}


def reached(chain: list[list[int]], row: int, *where: Any) -> set[int]:
    ended = next((n for n, step in enumerate(chain) if step[0] < 0), len(chain))
    at = {row} if ended else set()
    for step in chain[:ended]:
        at = set().union(*(line(step, one, *where) for one in at))
    return at


def test_reach() -> None:
    tried = unfinished = 0
    for seed in range(8):
        for sample in TABLE["reach"].samples(np.random.default_rng(seed)):
            chains, heads, ranges, bits, *flat = sample.inputs
            rows, room = sample.attributes["rows"], sample.attributes["room"]
            extent = bits.shape[1]
            parts = (flat[n::4] for n in range(4))
            where = bits, list(zip(*parts, strict=True)), extent
            counts, columns = TABLE["reach"].reference(*sample.inputs, rows=rows, room=room)
            for part, (head, low, high) in enumerate(ranges.tolist()):
                wanted: list[list[int]] = []
                first = min(max(low, 0), extent)
                for row in range(first, min(high, extent, first + rows)):
                    if not 0 <= head < len(heads):
                        break
                    start, past, *known = heads[head].tolist()
                    found: set[int] = set()
                    for chain in chains[max(start, 0) : max(past, 0)].tolist():
                        found |= reached(chain, row, *where)
                    if known[0] >= 0:
                        found -= line(known, row, *where)
                    wanted.append(sorted(found))
                sizes, used = [], 0
                for one in wanted:
                    used = used + len(one) if used >= 0 and used + len(one) <= room else -1
                    sizes.append(-1 if used < 0 else len(one))
                assert counts[part].tolist() == sizes + [0] * (rows - len(sizes))
                kept = [c for one, n in zip(wanted, sizes, strict=True) if n >= 0 for c in one]
                assert columns[part].tolist() == kept + [0] * (room - len(kept))
                tried += len(wanted)
                unfinished += -1 in sizes
    assert tried > 100
    assert unfinished
