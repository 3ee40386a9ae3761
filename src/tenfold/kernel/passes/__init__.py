"""Passes from kernel to kernel, shared by all backends."""
