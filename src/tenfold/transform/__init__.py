"""Transformations: programs made from programs."""
