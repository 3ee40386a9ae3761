"""Routines on an adapter: what no kernel is."""
