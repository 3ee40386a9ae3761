"""Legal kernels as LLVM IR for a GPU's threads."""
