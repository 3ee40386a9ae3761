"""Output: a run as files: every query's answer, tables, and where the figures come from."""
