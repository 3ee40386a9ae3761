"""Control flow and effects: branches, loops, hooks and host calls."""
