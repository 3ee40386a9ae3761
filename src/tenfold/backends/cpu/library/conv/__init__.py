"""Convolutions in panels and directly, as LLVM IR. What writes it is wanted by whoever compiles
one."""
