"""Batching rules, and what ops need under a mask of lanes."""
