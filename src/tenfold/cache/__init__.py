"""Caches of plans."""

from tenfold.cache.memory import Plans, keep_verdict, plans
from tenfold.cache.recompile import RecompileWatch

__all__ = ["Plans", "RecompileWatch", "keep_verdict", "plans"]
