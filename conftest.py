"""Traced arrays know NumPy's functions before any module is tested alone; no test meets plans of
another run unless it asks for a disk cache of its own, nor those of another test."""

import gc
import os
import signal

# A shell that starts the tests in the background has them ignore Ctrl-C, and their children with
# them, whose endless loops nothing else ends.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["TENFOLD_CACHE"] = "off"
# Checks come to their end in the first call, however slow the machine is.
os.environ["TENFOLD_VERIFY"] = "600"

import pytest
from hypothesis import settings

import tenfold.api  # noqa: F401
from tenfold.cache.memory import plans
from tests.legality import hold_kernels_to_it

hold_kernels_to_it()

# The same examples in every run, so that what fails is a change's doing; `make fuzz` draws others.
settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def _no_plans() -> None:
    """What a test counts must not depend on which tests ran before it in this process."""
    plans.clear()


def pytest_collection_finish() -> None:
    """The collector need not look at all tests again whenever one of them collects."""
    gc.collect()
    gc.freeze()
