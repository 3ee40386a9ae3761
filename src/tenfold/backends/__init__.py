"""Backends: what compiles plans and runs them. Each is one record (`backend`), found by its name
(`registry`), with a folder of its own; `llvm` is shared by those that print LLVM IR."""
