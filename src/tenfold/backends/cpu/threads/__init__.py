"""Threads: one pool for the process, how many it may have, and the entry that native code calls.

- `pool_text` is the pool as LLVM IR: workers, `tn_parallel_for`, memory of a worker's own.
- `limits` says how many threads this process may use.
- `pool` brings the pool into the process and sets its limit.
"""
