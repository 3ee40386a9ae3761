"""Pages for code: what one image gives back another may write to."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tenfold.backends.cpu.link.elf import CODE, CONSTANT, DATA, PAGE
from tenfold.backends.cpu.link.pages import AREA, ImagePages

PARTS = (CODE, CONSTANT, DATA)


@pytest.mark.parametrize("size", [1, PAGE, 5 * PAGE + 1, AREA + 1])
def test_pages_that_come_back_are_clear_and_writable(size: int) -> None:
    for _ in range(3):
        image = ImagePages([size] * 3)
        for part in PARTS:
            held = image.part(part)
            assert bytes(held) == bytes(len(held))
            held[:] = b"\1" * len(held)
        image.seal()
        del image, held


# The first of two threads is held up while it notes how far pages were given out. A write to a page
# that was not made writable again ends the process.
THREADS = """
import importlib, threading, time

pages = importlib.import_module("tenfold.backends.cpu.link.pages")
images = [pages.ImagePages([1] * 3)]
held_up = threading.Event()

def late(*values):
    if threading.current_thread() is first and len(values) == 2:
        held_up.set()
        time.sleep(0.2)
    return max(values)

def take():
    images.append(pages.ImagePages([1] * 3))

pages.max = late
first, second = threading.Thread(target=take), threading.Thread(target=take)
first.start()
held_up.wait(10)
second.start()
first.join(), second.join()
while images:
    images.pop().seal()
images = [pages.ImagePages([1] * 3) for _ in range(3)]
for image in images:
    image.part(0)[0] = 1
assert held_up.is_set()
"""


def test_pages_that_threads_took_at_once_can_be_written_to_again() -> None:
    run = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True)
    assert run.returncode == 0, f"ended with {run.returncode}: {run.stderr[-2000:]}"
