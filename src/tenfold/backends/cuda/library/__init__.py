"""Routines on a GPU: what no kernel is."""
