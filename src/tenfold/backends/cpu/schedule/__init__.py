"""How a kernel runs on this CPU: order, lanes, tiles, row blocking, memory traffic.

Outputs beyond the caches are written by non-temporal stores, tiles begin where cache lines do, and
the next row of a reduction and the rows that a gather will read are prefetched, the next row by the
loop that computes most. Where stores are non-temporal, the first reductions of a row come before
the stores of the row above (software pipelining): loads that lie alike in a page wait for such
stores. A row that fits the registers is one long chain of instructions, so a few such rows are
computed at once (row blocking). What divides a whole row is inverted once, and each quotient is
mended to the bits of a division (`backends/cpu/emit/division`).
"""
