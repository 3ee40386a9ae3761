"""Object code: compiled, mapped into memory, linked, and kept.

- The gate and the steps are the same for every plan. Where no cache has them they are compiled in
  a thread of their own while the program is traced and planned (`backends/cpu/run/fixed`): LLVM
  runs without the GIL. Whoever needs them waits; a fork waits for the thread.
- Kernels are compiled in modules of a few each, several at once (`backends/llvm/assemble`), while
  the text of the next is being written. Each has an LLVM context and a machine of its own, and
  the one long call goes past the lock that llvmlite puts around all calls. How kernels are parted
  into modules depends on them alone, and their objects, in the order of the kernels, are kept as
  one archive: neither the number of threads nor who is done first changes a byte.
- What several threads need first is made by one of them while the others wait (`locks.once`, and
  a lock around kernels), and whoever uses code holds it: a program its kernels and sorts, a
  callable its program and the gate.
- A fork waits until no other thread holds a lock of ours, so a child never finds LLVM half way
  through something; a module whose import another thread had begun is imported anew in the child
  (`locks`).
- Python's garbage collector rests while a program is traced and planned (`collector`). Threads
  that compile give the interpreter up sooner than Python's own rule has it (`switching`).
"""
