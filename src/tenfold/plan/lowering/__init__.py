"""Lowering: from groups of nodes to kernels."""
