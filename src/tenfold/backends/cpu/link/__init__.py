"""Object code: compiled, mapped into memory, linked, and kept."""
