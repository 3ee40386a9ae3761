"""From a kernel and its schedule to LLVM IR: loops, memory, reductions."""
