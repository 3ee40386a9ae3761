"""Resolution: one step of proof search for many states at once, and the tables it looks in."""
