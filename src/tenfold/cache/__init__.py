"""Caches of plans."""

from tenfold.cache.memory import Plans, plans

__all__ = ["Plans", "plans"]
