"""Promotion: from the evaluator to a plan, without anyone waiting.

With `compile="background"` the order of events is: the first call asks one thread of the process
to compile and is answered by the evaluator, as are all calls until the plan is made and certified
on a copy of the first call's arguments; then native code answers. A program with callbacks is
certified by the first call after that, since callbacks run once a call. At the end of the process
the job under way is finished and the rest are dropped; a fork waits for the job under way. While
a job runs, Python switches between threads every tenth of a millisecond instead of every five, so
that a call is not held up by the thread that compiles (`benchmarks/background.py`).
"""

from tenfold.promote.background import Job, submit

__all__ = ["Job", "submit"]
