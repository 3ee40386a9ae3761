"""The native entry point: how Python's arguments reach a plan and its results come back."""
