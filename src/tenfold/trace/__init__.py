"""Tracing: from a Python function to a graph."""
