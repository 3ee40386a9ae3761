"""Caches of plans."""

from tenfold.cache.memory import Plans, plans
from tenfold.cache.recompile import Watch

__all__ = ["Plans", "Watch", "plans"]
