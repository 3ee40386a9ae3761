"""The whole package is imported before any module of it is tested alone; no test meets plans of
another run unless it asks for a disk cache of its own."""

import os

os.environ["TENFOLD_CACHE"] = "off"

import tenfold  # noqa: F401
