"""What orders threads, and what does not: races, barriers, clusters, fences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from simt import Deadlock, Divergence, Race, StepLimit, Undefined
from simt_kernels import THREAD, Device

BARRIER = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"
SHARED = "@s = internal addrspace(3) global [256 x i32] undef, align 16"


def kernel(body: str, params: str = "ptr addrspace(1) %out", more: str = SHARED) -> str:
    return f"{more}\ndefine ptx_kernel void @k({params}) {{\nentry:\n{THREAD}{body}\n}}\n"


def at(base: str, index: str, name: str, space: int = 1, ty: str = "i32") -> str:
    return f"  %{name} = getelementptr {ty}, ptr addrspace({space}) {base}, i32 {index}\n"


def ran(body: str, blocks: int = 2, threads: int = 64, **how: Any) -> np.ndarray:
    """Words that a kernel leaves in memory which begins as 0, 1, 2 and so on."""
    device = Device()
    out = device.put(np.arange(1024, dtype=np.uint32))
    device.run(kernel(body), blocks, threads, out, **how)
    return device.memory.read(out, np.uint32, 1024)


def racy(body: str, message: str, blocks: int = 2, threads: int = 64) -> None:
    """A race, which is found unless nobody looks for it."""
    with pytest.raises(Race, match=message):
        ran(body, blocks, threads)
    ran(body, blocks, threads, races=False)


# Global memory


def test_two_threads_write_different_values_at_once() -> None:
    racy("  store i32 %i, ptr addrspace(1) %out\n  ret void", "two threads write different")


def test_two_threads_write_one_value() -> None:
    found = ran("  store i32 7, ptr addrspace(1) %out\n  ret void")
    assert found[0] == 7
    assert found[1] == 1


def test_two_threads_write_one_after_the_other() -> None:
    body = (
        "  %n = add i32 %i, 1\n"
        + at("%out", "%i", "p")
        + at("%out", "%n", "q")
        + "  store i32 5, ptr addrspace(1) %p\n  store i32 {}, ptr addrspace(1) %q\n  ret void"
    )
    racy(
        body.format(6),
        r"writes another value over what another thread wrote, byte 4 of .*; the other is thread "
        r"\(1, 0, 0\) of block \(0, 0, 0\)\n  in @k, line \d+: store i32 6.*\n"
        r"  by thread \(0, 0, 0\)",
    )
    ran(body.format(5))


def test_reading_what_another_thread_wrote() -> None:
    body = (
        "  %x = xor i32 %i, {}\n"
        + at("%out", "%i", "p")
        + at("%out", "%x", "q")
        + "  store i32 5, ptr addrspace(1) %p\n{}  %v = load i32, ptr addrspace(1) %q\n  ret void"
    )
    racy(body.format(1, ""), "reads what another thread wrote")
    ran(body.format(0, ""))  # each reads its own
    ran(body.format(1, BARRIER))  # in one block a barrier orders them
    racy(body.format(64, BARRIER), "reads what another thread wrote, byte 256")  # not in two


def test_writing_what_another_thread_read() -> None:
    body = (
        "  %n = add i32 %i, 1\n"
        + at("%out", "%i", "p")
        + at("%out", "%n", "q")
        + "  %v = load i32, ptr addrspace(1) %q\n{}  store i32 5, ptr addrspace(1) %p\n  ret void"
    )
    racy(body.format(""), "writes what another thread read")
    ran(body.format(BARRIER), blocks=1)
    racy(body.format(BARRIER), "writes what another thread read")  # at the border of the blocks


@pytest.mark.parametrize(("blocks", "who"), [(1, "several of block number 0"), (2, "of several")])
def test_writing_what_several_threads_read(blocks: int, who: str) -> None:
    body = (
        "  %v = load i32, ptr addrspace(1) %out\n"
        "  %c = icmp eq i32 %i, 5\n  br i1 %c, label %one, label %end\n"
        "one:\n  store i32 %v, ptr addrspace(1) %out\n  br label %end\nend:\n  ret void"
    )
    racy(body, f"writes what another thread read.*{who}", blocks)
    alone = body.replace("  %c =", BARRIER + "  %c =")
    ran(alone, blocks=1)


def test_a_thread_that_reads_again_after_a_barrier() -> None:
    """All read, then after a barrier one reads and writes: that is no race with itself."""
    body = (
        "  %v = load i32, ptr addrspace(1) %out\n"
        + BARRIER
        + "  %c = icmp eq i32 %i, 5\n  br i1 %c, label %one, label %end\n"
        "one:\n  %w = load i32, ptr addrspace(1) %out\n  store i32 %w, ptr addrspace(1) %out\n"
        "  br label %end\nend:\n  ret void"
    )
    ran(body, blocks=1)


def test_bytes_of_one_word() -> None:
    """Neighbouring bytes are no race; a word over them is one, whichever comes first."""
    byte = at("%out", "%i", "p", ty="i8") + "  store i8 1, ptr addrspace(1) %p\n"
    word = "  %j = and i32 %i, -4\n" + at("%out", "%j", "q", ty="i8")
    word += "  %v = load i32, ptr addrspace(1) %q\n"
    assert (ran(byte + "  ret void")[:32] == 0x01010101).all()
    racy(byte + word + "  ret void", "reads what another thread wrote")
    racy(word + byte + "  ret void", "writes what another thread read")
    ran(word + BARRIER + byte + "  ret void")


def test_vectors_race_too() -> None:
    body = (
        at("%out", "%i", "p", ty="<4 x i32>")
        + "  %j = mul i32 %i, 4\n  %k = add i32 %j, {}\n"
        + at("%out", "%k", "q")
        + "  store <4 x i32> zeroinitializer, ptr addrspace(1) %p, align 16\n"
        "  %v = load i32, ptr addrspace(1) %q\n  ret void"
    )
    ran(body.format(3))
    racy(body.format(4), "reads what another thread wrote, byte 16 ")


# Shared memory and barriers


EXCHANGE = (
    at("@s", "%tid", "p", 3)
    + "  store i32 %tid, ptr addrspace(3) %p\n{}  %x = xor i32 %tid, 33\n"
    + at("@s", "%x", "q", 3)
    + "  %v = load i32, ptr addrspace(3) %q\n"
    + at("%out", "%i", "o")
    + "  store i32 %v, ptr addrspace(1) %o\n{}  ret void"
)


def test_shared_memory_needs_barriers() -> None:
    found = ran(EXCHANGE.format(BARRIER, ""))
    np.testing.assert_array_equal(found[:128], np.tile(np.arange(64) ^ 33, 2))
    racy(EXCHANGE.format("", ""), "reads what another thread wrote, byte 132 of @s")
    again = "  store i32 0, ptr addrspace(3) %p\n"
    racy(EXCHANGE.format(BARRIER, again), "writes what another thread read, byte 0 of @s")
    ran(EXCHANGE.format(BARRIER, BARRIER + again))


def test_shared_memory_is_a_blocks_own() -> None:
    body = "  %c = icmp eq i32 %bid, 0\n  br i1 %c, label %first, label %other\n"
    body += "first:\n  store i32 9, ptr addrspace(3) @s\n  br label %other\n"
    body += "other:\n" + BARRIER + "  %v = load i32, ptr addrspace(3) @s\n  ret void"
    with pytest.raises(Undefined, match=r"never written, 4 bytes at shared(.*\n)*.*block \(1, 0"):
        ran(body)


def test_barriers_in_a_function() -> None:
    more = SHARED + "\ndefine internal void @sync() {\n" + BARRIER + "  ret void\n}\n"
    device = Device()
    out = device.put(np.zeros(128, np.uint32))
    body = EXCHANGE.format("  call void @sync()\n", "  call void @sync()\n")
    device.run(kernel(body, more=more), 2, 64, out)
    found = device.memory.read(out, np.uint32, 128)
    np.testing.assert_array_equal(found, np.tile(np.arange(64) ^ 33, 2))


def test_a_divergent_barrier() -> None:
    body = "  %c = icmp ult i32 %tid, 32\n  br i1 %c, label %yes, label %no\n"
    both = body + f"yes:\n{BARRIER}  br label %end\nno:\n{BARRIER}  br label %end\nend:\n  ret void"
    with pytest.raises(Divergence, match=r"a divergent barrier: .*line(.*\n)*.*thread"):
        ran(both)
    # Threads that have returned are not waited for.
    ran(body + f"yes:\n{BARRIER}  ret void\nno:\n  ret void")
    # Of two blocks each may be at its own.
    ran(both.replace("icmp ult i32 %tid, 32", "icmp eq i32 %bid, 0"))


def test_a_barrier_in_a_loop_of_different_lengths() -> None:
    body = (
        "  br label %loop\nloop:\n  %k = phi i32 [ 0, %entry ], [ %n, %loop ]\n"
        + BARRIER
        + "  %n = add i32 %k, 1\n  %m = icmp ult i32 %n, {}\n"
        "  br i1 %m, label %loop, label %end\nend:\n{}  ret void"
    )
    ran(body.format("%bid", ""))
    ran(body.format("%tid", ""))  # who has returned does not count
    with pytest.raises(Divergence, match="divergent barrier"):
        ran(body.format("%tid", BARRIER))


# Atomic operations that order


LAST = """
{write}
  %c = icmp eq i32 %tid, 0
  br i1 %c, label %count, label %wait
count:
{fence}
  %old = atomicrmw uinc_wrap ptr addrspace(1) %counter, i32 {last} {order}, align 4
{after}
  %is = icmp eq i32 %old, {last}
  %z = zext i1 %is to i32
  store i32 %z, ptr addrspace(3) @s
  br label %wait
wait:
{barrier}
  %f = load i32, ptr addrspace(3) @s
  %go = icmp ne i32 %f, 0
  br i1 %go, label %sum, label %end
sum:
  %m = and i32 %tid, 7
  %q = getelementptr i32, ptr addrspace(1) %out, i32 %m
  %v = load i32, ptr addrspace(1) %q, align 4
  %k = add i32 %tid, 100
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %k
  store i32 %v, ptr addrspace(1) %o, align 4
  br label %end
end:
  ret void"""
# Thread 0 of each block writes what the last block reads.
ONE = """
  %w = icmp eq i32 %tid, {}
  br i1 %w, label %write, label %begin
write:
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %bid
  store i32 7, ptr addrspace(1) %p, align 4
  br label %begin
begin:"""
FENCE = "  call void @llvm.nvvm.membar.gl()"


def last(**parts: str) -> None:
    given = {"write": ONE.format(0), "fence": "", "after": "", "barrier": BARRIER}
    given |= {"order": "acq_rel", "last": "7"} | parts
    device = Device()
    out, counter = device.put(np.arange(256, dtype=np.uint32)), device.put(np.zeros(1, np.uint32))
    text = kernel(LAST.format(**given), "ptr addrspace(1) %out, ptr addrspace(1) %counter")
    device.run(text, 8, 32, out, counter)
    found = device.memory.read(out, np.uint32, 256)
    assert (found[:8] == 7).all()
    assert (found[100:132] == 7).all()
    assert device.memory.read(counter, np.uint32, 1) == 0


def test_the_last_block_reads_what_all_wrote() -> None:
    last()
    last(order="monotonic", fence=FENCE, after=FENCE)
    last(write=ONE.format(3) + "\n" + BARRIER)  # another thread wrote, before a barrier


@pytest.mark.parametrize(
    "parts",
    [
        {"order": "monotonic"},
        {"order": "monotonic", "fence": FENCE},
        {"order": "monotonic", "after": FENCE},
        {"order": "release"},
        {"order": "acquire"},
        {"write": ONE.format(3)},  # nothing orders that with thread 0
    ],
)
def test_what_the_last_block_needs(parts: dict[str, str]) -> None:
    with pytest.raises(Race, match="reads what another thread wrote"):
        last(**parts)


def test_atomics_are_no_race_but_with_plain_accesses() -> None:
    add = "  %a = atomicrmw add ptr addrspace(1) %out, i32 1 monotonic, align 4\n"
    plain = "  %v = load i32, ptr addrspace(1) %out\n"
    assert ran(add + add.replace("%a", "%b") + "  ret void")[0] == 256
    racy(add + plain + "  ret void", "reads what another thread changed atomically")
    racy(plain + add + "  ret void", "changes atomically what another thread read")
    ran(add + BARRIER + plain + "  ret void", blocks=1)
    ran(add + "  %v = load atomic i32, ptr addrspace(1) %out monotonic, align 4\n  ret void")
    ran(add + "  %v = load volatile i32, ptr addrspace(1) %out\n  ret void")


# Clusters


CLUSTER = """
  %p = getelementptr i32, ptr addrspace(3) @s, i32 %tid
  store i32 %i, ptr addrspace(3) %p, align 4
{first}
  %rank = call i32 @llvm.nvvm.read.ptx.sreg.cluster.ctaid.x()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.cluster.nctaid.x()
  %n = add i32 %rank, 1
  %next = urem i32 %n, %size
  %there = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) %p, i32 %next)
  %v = load i32, ptr addrspace(7) %there, align 4
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %v, ptr addrspace(1) %o, align 4
{second}
  store i32 0, ptr addrspace(3) %p, align 4
  ret void"""
SYNC = """  call void @llvm.nvvm.barrier.cluster.arrive.aligned()
  call void @llvm.nvvm.barrier.cluster.wait.aligned()
"""


def clustered(change: Callable[[str], str] = str, races: bool = True, **parts: str) -> np.ndarray:
    device = Device()
    out = device.put(np.zeros(256, np.uint32))
    text = kernel(CLUSTER.format(**({"first": SYNC, "second": SYNC} | parts)))
    device.run(change(text), 4, 64, out, cluster=2, races=races)
    return device.memory.read(out, np.uint32, 256)


def test_a_cluster() -> None:
    i = np.arange(256)
    np.testing.assert_array_equal(clustered(), i ^ 64)
    attribute = clustered(lambda text: text.replace(") {", ') "nvvm.cluster_dim"="2,1,1" {'))
    np.testing.assert_array_equal(attribute, i ^ 64)


def test_a_cluster_without_its_barriers() -> None:
    with pytest.raises(Race, match="reads what another thread wrote, byte 0 of @s"):
        clustered(first=BARRIER)
    with pytest.raises(Race, match="writes what another thread read"):
        clustered(second="")
    arrive, wait = SYNC.splitlines(keepends=True)
    with pytest.raises(Race, match="writes what another thread read"):
        clustered(lambda text: text.replace("  %v = load", arrive + "  %v = load"), second=wait)
    with pytest.raises(Divergence, match="twice"):
        clustered(first=arrive, races=False)
    with pytest.raises(Deadlock, match="all threads wait"):
        clustered(first=wait)
    with pytest.raises(Undefined, match="no such block"):
        clustered(lambda text: text.replace("urem i32 %n, %size", "add i32 %n, 1"))


def test_a_cluster_of_which_a_part_returns() -> None:
    body = """
  %c = icmp eq i32 %bid, 0
  br i1 %c, label %cluster, label %other
cluster:
  call void @llvm.nvvm.barrier.cluster.arrive()
  call void @llvm.nvvm.barrier.cluster.wait()
  ret void
other:
"""
    device = Device()
    device.run(kernel(body + "  ret void"), 2, 32, device.room(4), cluster=2)
    # A part that goes on for ever without arriving keeps the other waiting.
    loop = f"  br label %loop\nloop:\n{BARRIER}  br label %loop"
    with pytest.raises(StepLimit):
        device.run(kernel(body + loop), 2, 32, device.room(4), cluster=2, limit=100)
