"""Kernels laid over invocations, as shaders."""
