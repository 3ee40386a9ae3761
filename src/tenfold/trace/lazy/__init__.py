"""Lazy arrays: values outside any trace, run when they are needed."""
