"""Threads: one pool for the process, how many it may have, and the entry that native code calls.

- `text` has the entry as LLVM IR and says what it does, `workers` what runs beside the caller,
  `words` what they share.
- `cut` says into how many parts the work of a kernel goes.
- `limits` says how many threads this process may use.
- `pool` brings the pool into the process and sets its limit.
"""
