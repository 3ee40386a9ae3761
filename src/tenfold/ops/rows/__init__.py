"""Rows of the op table, by kind."""
