"""Caches of plans."""

from tenfold.cache.memory import Plans, keep_verdict, plans
from tenfold.cache.recompile import Watch

__all__ = ["Plans", "Watch", "keep_verdict", "plans"]
