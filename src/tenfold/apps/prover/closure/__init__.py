"""Closure: everything that follows, set at a time, and ranks as lookups in it."""
