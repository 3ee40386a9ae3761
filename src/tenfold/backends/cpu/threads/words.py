"""The words of the pool, and what is read of them anywhere.

`epoch` grows with every piece of work, and is what workers wait for. `gate` has whether work is
open and how many workers are inside; who comes late finds it shut, and whoever owns the work waits
until all are out. What different threads write lies on lines apart.

Each thread that takes part has a share of the indices, a stretch of them that depends on nothing
but their number and that of the threads: in the next round of a loop it finds in its own cache what
it wrote in the last one. `taken` says how many of a share are taken, by whomever: who is done with
his own goes on with others'. It has a mark of the work that it is said of, so nobody resets it.
"""

from __future__ import annotations

from tenfold.backends.cpu.threads.limits import MOST

POOL_EXPORTS = ("tn_parallel_for", "tn_pool_stopped", "tn_worker_memory", "tn_pool")
# Offsets in bytes of the words of `tn_pool`.
BUSY, LIMIT, STARTED, CREATED, REGIONS, INDICES, MOMENT, LAST = 0, 4, 8, 16, 24, 32, 40, 48
EPOCH, SLEEPERS, GATE = 64, 128, 192
FUNCTION, CONTEXT, COUNT, PROCESSOR, THREADS, ANSWER = 320, 328, 336, 344, 348, 384
ALLOWED, MASK_BYTES = 448, 128  # the processors that the caller may run on
# Of each thread that takes part: memory, its bytes, how many indices it ran, what is taken.
WORKERS, WORKER_BYTES = 576, 64
MEMORY, MEMORY_BYTES, RUN, TAKEN = 0, 8, 16, 24
POOL_BYTES = WORKERS + WORKER_BYTES * MOST

MARK = 32  # bits of `taken` below its mark: the number of pieces of work before, as far as it fits

# Of the gate: that work is open, that its owner sleeps, how many workers are inside.
OPEN, MARKED, INSIDE = 1 << 30, 1 << 29, (1 << 29) - 1
SPINS = 1000  # pauses before a thread that waits goes to sleep: 10 to 50 µs


def at(name: str, offset: int, base: str = "@tn_pool") -> str:
    """The line that says where a word lies."""
    return f"  {name} = getelementptr i8, ptr {base}, i64 {offset}\n"
