"""Passes from graph to graph before fusion."""
