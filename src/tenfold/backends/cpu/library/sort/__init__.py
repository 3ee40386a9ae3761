"""Stable sorts of lines, as LLVM IR."""
