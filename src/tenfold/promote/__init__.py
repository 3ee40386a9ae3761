"""Promotion: from the evaluator to a plan, without anyone waiting."""

from tenfold.promote.background import Job, submit

__all__ = ["Job", "submit"]
