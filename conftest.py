"""The whole package is imported before any module of it is tested alone."""

import tenfold  # noqa: F401
