"""Memory of large results: kept, bounded, and never two results' at once."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.entry import kept_memory as kept
from tenfold.backends.cpu.entry import ndarray
from tenfold.backends.cpu.entry.kept import OWN, SLOTS
from tests.backends.cpu.filling import MIB, Fill, address, byte, counts

pytestmark = pytest.mark.usefixtures("alone")

LEAST = kept.LEAST


def at_rest(bytes: int) -> int:
    """What a block for so many bytes counts when it rests."""
    return -(-bytes // 4096) * 4096


def test_it_is_supported_here() -> None:
    assert ndarray.unkept() is None
    assert tn.backends()["cpu"]["memory"] == f"of results kept: up to {tn.config.kept_bytes} bytes"


def test_a_freed_result_serves_the_next(fill: Fill) -> None:
    call = fill(f"u8[{MIB}]")
    first = call(byte(1))
    place = address(first)
    assert counts() == (0, 1, 0)
    del first
    assert counts() == (0, 1, MIB)
    second = call(byte(2))
    assert address(second) == place
    assert counts() == (1, 1, 0)
    assert (second == 2).all()
    third = call(byte(3))
    assert counts() == (1, 2, 0)
    assert (second == 2).all()
    assert (third == 3).all()


@pytest.mark.parametrize("size", [LEAST, LEAST + 1, MIB, 2 * MIB - 1, 2 * MIB, 5 * MIB + 3])
def test_results_lie_at_a_page_and_large_ones_at_a_huge_one(fill: Fill, size: int) -> None:
    made = fill(f"u8[{size}]")(byte(7))
    assert np.asarray(made == 7).all()
    assert address(made) % 4096 == 0
    if size >= 2 * MIB and kept._huge_pages():
        assert address(made) % (2 * MIB) == 0
    del made
    assert counts() == (0, 1, at_rest(size))


def test_small_results_are_numpys_own(fill: Fill) -> None:
    made = fill(f"u8[{LEAST - 1}]")(byte(1))
    assert np._core.multiarray.get_handler_name(made) == "default_allocator"  # type: ignore[attr-defined]
    del made
    assert counts() == (0, 0, 0)


def test_memory_serves_results_of_about_its_size(fill: Fill) -> None:
    close = 8 * MIB * 8 // 9 + 1
    wanted = {"block": 8 * MIB, "close": close, "far": 7 * MIB, "more": 8 * MIB + 1}
    sizes = {name: fill(f"u8[{size}]") for name, size in wanted.items()}
    sizes["block"](byte(1))
    assert counts() == (0, 1, 8 * MIB)
    held = [sizes["far"](byte(2)), sizes["more"](byte(3))]
    assert counts() == (0, 3, 8 * MIB)
    held.append(sizes["close"](byte(4)))
    assert counts() == (1, 3, 0)
    assert [np.unique(one).tolist() for one in held] == [[2], [3], [4]]


def test_the_smallest_that_fits_is_taken_and_of_equals_the_last_freed(
    fill: Fill,
) -> None:
    call, larger = fill(f"u8[{MIB}]"), fill(f"u8[{MIB + 4096}]")
    one, two, wide = call(byte(1)), call(byte(2)), larger(byte(3))
    places = address(one), address(two)
    del two, one, wide
    first, second = call(byte(4)), call(byte(5))
    assert (address(first), address(second)) == places


def test_bytes_at_rest_are_bounded(fill: Fill) -> None:
    tn.config.kept_bytes = 5 * MIB
    call = fill(f"u8[{MIB}]")
    held = [call(byte(n)) for n in range(9)]
    places = [address(one) for one in held]
    while held:
        del held[0]
        assert counts()[2] <= 5 * MIB
    assert counts() == (0, 9, 5 * MIB)
    again = [call(byte(n)) for n in range(5)]  # those that were freed last
    assert {address(one) for one in again} == set(places[4:])
    fill(f"u8[{6 * MIB}]")(byte(1))  # more than may rest at all
    assert counts()[2] == 0


def test_blocks_at_rest_are_bounded(fill: Fill) -> None:
    call = fill(f"u8[{LEAST}]")
    held = [call(byte(n)) for n in range(SLOTS + 10)]
    held.clear()
    assert counts() == (0, SLOTS + 10, SLOTS * LEAST)


def test_a_lower_limit_holds_at_once_and_none_turns_it_off(fill: Fill) -> None:
    call = fill(f"u8[{MIB}]")
    held = [call(byte(n)) for n in range(8)]
    live = held.pop()
    held.clear()
    assert counts()[2] == 7 * MIB
    tn.config.kept_bytes = 3 * MIB
    assert counts()[2] == 3 * MIB
    tn.config.kept_bytes = 0
    assert counts() == (0, 8, 0)
    off = call(byte(9))
    assert np._core.multiarray.get_handler_name(off) == "default_allocator"  # type: ignore[attr-defined]
    assert "not kept" in tn.backends()["cpu"]["memory"]
    assert (live == 7).all()
    del off, live  # made before: its memory goes back to the system
    assert counts() == (0, 8, 0)


def lazily_free(place: int) -> int:
    """The bytes of the mapping around an address that the system may take (Linux)."""
    found, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, *rest = line.split()
        if name.endswith(":"):
            found += int(rest[0]) * 1024 if inside and name == "LazyFree:" else 0
        else:
            low, high = (int(end, 16) for end in name.split("-"))
            inside = low <= place < high
    return found


@pytest.mark.skipif(not kept._huge_pages(), reason="the system has no huge pages to lend")
def test_only_what_rests_beyond_a_share_is_lent(fill: Fill) -> None:
    call = fill(f"u8[{OWN // 2}]")
    held = [call(byte(n)) for n in range(4)]
    places = [address(one) for one in held]
    while held:  # one after the other: interpreters differ in which is freed first
        del held[0]
    assert [lazily_free(place) > 0 for place in places] == [False, False, True, True]
    again = [call(byte(9)) for _ in range(3)]  # those freed last come first
    assert [address(one) for one in again] == places[:0:-1]
    while again:
        del again[-1]  # the first one still rests
    assert [lazily_free(place) > 0 for place in places] == [False, False, True, True]
    assert (call(byte(7)) == 7).all()
    assert tn.release_memory() == 2 * OWN
    held = [call(byte(n)) for n in range(3)]
    places = [address(one) for one in held]
    while held:  # nothing of what was given back is counted any more
        del held[0]
    assert [lazily_free(place) > 0 for place in places] == [False, False, True]


def test_all_is_given_back_on_demand(fill: Fill) -> None:
    call = fill(f"u8[{MIB}]")
    held = [call(byte(n)) for n in range(4)]
    live = held[1:3]
    held.clear()
    assert tn.release_memory() == 2 * MIB
    assert counts()[2] == 0
    assert [int(one[-1]) for one in live] == [1, 2]
    assert tn.release_memory() == 0


def test_what_rests_for_thousands_of_calls_is_given_back(fill: Fill) -> None:
    large, small = fill(f"u8[{MIB}]"), fill("u8[8]")
    large(byte(1))
    for _ in range(3 * 4096):
        small(byte(1))
    assert counts() == (0, 1, 0)
    for _ in range(3 * 4096):  # what is used stays
        large(byte(2))
    assert counts() == (3 * 4096 - 1, 2, MIB)


def test_a_call_that_fails_gives_its_memory_back(fill: Fill) -> None:
    with pytest.raises(SystemError):
        fill(f"u8[{MIB}]", 1)(byte(1))
    assert counts() == (0, 1, MIB)
    assert fill(f"u8[{MIB}]", 2)(byte(1)) == "slow"
    assert counts() == (1, 1, MIB)


def test_a_view_keeps_its_memory(fill: Fill) -> None:
    call = fill(f"u8[{MIB}]")
    views = []
    for n in range(20):
        made = call(byte(n))
        views.append((made[n::97], memoryview(made)[:9], np.from_dlpack(made[:5])))
    del made
    others = [call(byte(255)) for _ in range(20)]
    assert counts() == (0, 40, 0)
    for n, parts in enumerate(views):
        assert all((np.asarray(part) == n).all() for part in parts)
    del others, parts
    views.clear()
    assert counts() == (0, 40, 40 * MIB)


def test_live_results_never_share_memory(fill: Fill) -> None:
    """Results come and go in an order as if drawn, in six sizes that serve each other."""
    calls = [
        fill(f"u8[{size}]") for size in (LEAST, LEAST + 9, MIB, MIB - 8000, 3 * MIB, 3 << 20 | 1)
    ]
    draw = np.random.default_rng(5)
    live: list[tuple[int, Any]] = []
    for turn in range(3000):
        if len(live) > 12 or (live and draw.random() < 0.5):
            mark, array = live.pop(int(draw.integers(len(live))))
            assert array[0] == array[array.size // 2] == array[-1] == mark
            del array
        else:
            made = calls[int(draw.integers(len(calls)))](byte(turn % 251))
            live.append((turn % 251, made))
            del made
    ranges = sorted((address(a), address(a) + a.nbytes) for _, a in live)
    assert all(end <= start for (_, end), (start, _) in pairwise(ranges))
    assert all((array == mark).all() for mark, array in live)
    assert counts()[0] > 1000


def test_threads_share_what_rests(fill: Fill) -> None:
    """Each thread makes results and hands them to another, which looks at them and frees them."""
    calls = [fill(f"u8[{size}]") for size in (LEAST, MIB, 2 * MIB)]
    handed: list[list[tuple[int, Any]]] = [[] for _ in range(4)]

    def work(who: int) -> int:
        wrong = 0
        for turn in range(300):
            mark = (who * 61 + turn) % 251
            handed[(who + 1) % 4].append((mark, calls[turn % 3](byte(mark))))
            while len(handed[who]) > 3:
                mark, array = handed[who].pop()
                wrong += not bool((array == mark).all())
                del array
        return wrong

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(work, range(4))) == 0
    handed.clear()
    found = counts()
    assert found[0] + found[1] == 1200
    assert found[2] <= tn.config.kept_bytes


def test_what_one_thread_made_another_frees(fill: Fill) -> None:
    held = [fill(f"u8[{MIB}]")(byte(1))]
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert counts() == (0, 1, MIB)


def _in_child(call: Any, live: Any, queue: Any) -> None:
    made = [call(byte(9)) for _ in range(3)]
    live[:] = 8
    queue.put((counts(), [int(one.min()) for one in made]))


def test_a_child_has_memory_of_its_own(fill: Fill) -> None:
    call = fill(f"u8[{MIB}]")
    call(byte(1))
    live = call(byte(2))
    call(byte(3))
    assert counts() == (1, 2, MIB)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(call, live, queue))
    child.start()
    found, made = queue.get()
    child.join()
    assert child.exitcode == 0
    assert (found, made) == ((2, 4, 0), [9, 9, 9])
    assert counts() == (1, 2, MIB)
    assert (live == 2).all()
    assert (call(byte(5)) == 5).all()


def test_what_is_computed_on_the_way_says_how_much_it_needs(fill: Fill) -> None:
    call = fill(f"u8[{MIB}]", arena=1 << 60)
    fill(f"u8[{2 * MIB}]")(byte(1))
    wanted = f"a call needs {1 << 60} bytes of memory for what it computes on the way"
    with pytest.raises(MemoryError, match=wanted):
        call(byte(1))
    assert counts()[2] == MIB  # its own result; what rested before was given back
