"""The namespace of the Python array API standard, 2024.12, over lazy and traced arrays."""

VERSION = "2024.12"
