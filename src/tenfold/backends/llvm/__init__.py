"""LLVM IR as text, and its assembly: what the backends that print LLVM share."""
