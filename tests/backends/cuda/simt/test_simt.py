"""The interpreter's threads: control flow, memory, warps, atomics, functions, its parser."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from simt import (
    Divergence,
    Inexact,
    IRProblem,
    LaunchProblem,
    Memory,
    Misaligned,
    OutOfBounds,
    StepLimit,
    Undefined,
    launch,
    parse,
)
from simt_kernels import THREAD, Device, edges, elementwise, same_bits


def kernel(body: str, params: str = "ptr addrspace(1) %out", more: str = "") -> str:
    """A kernel that knows its thread %i, %tid, %bid and ends by itself."""
    return f"{more}\ndefine ptx_kernel void @k({params}) {{\nentry:\n{THREAD}{body}\n}}\n"


STORE = """
  %po = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %r, ptr addrspace(1) %po, align 4
  ret void"""


def words(body: str, blocks: int = 2, threads: int = 64, more: str = "", **how: Any) -> Any:
    """What lines make, %r, for each thread; blocks begin after the first may be among them."""
    device = Device()
    out = device.room(4 * blocks * threads)
    device.run(kernel(body + STORE, more=more), blocks, threads, out, **how)
    return device.memory.read(out, np.uint32, blocks * threads)


# Control flow


DIAMOND = """
  %odd = trunc i32 %i to i1
  br i1 %odd, label %yes, label %no
yes:
  %a = mul i32 %i, 3
  br label %join
no:
  %b = add i32 %i, 100
  br label %join
join:
  %r = phi i32 [ %a, %yes ], [ %b, %no ]"""


def test_threads_part_and_meet_again() -> None:
    i = np.arange(128, dtype=np.uint32)
    np.testing.assert_array_equal(words(DIAMOND, limit=4), np.where(i % 2, i * 3, i + 100))
    with pytest.raises(StepLimit, match="more steps"):
        words(DIAMOND, limit=3)


def test_a_branch_that_is_the_same_for_all() -> None:
    body = DIAMOND.replace("trunc i32 %i to i1", "icmp eq i32 %ntid, 64")
    np.testing.assert_array_equal(words(body, limit=3), np.arange(128) * 3)


COLLATZ = """
  br label %loop
loop:
  %n = phi i32 [ %i, %entry ], [ %next, %go ]
  %r = phi i32 [ 0, %entry ], [ %more, %go ]
  %end = icmp ule i32 %n, 1
  br i1 %end, label %done, label %go
go:
  %half = lshr i32 %n, 1
  %three = mul i32 %n, 3
  %up = add i32 %three, 1
  %odd = trunc i32 %n to i1
  %next = select i1 %odd, i32 %up, i32 %half
  %more = add i32 %r, 1
  br label %loop
done:"""


def test_a_loop_of_different_lengths() -> None:
    def steps(n: int) -> int:
        return 0 if n <= 1 else 1 + steps(3 * n + 1 if n % 2 else n // 2)

    np.testing.assert_array_equal(words(COLLATZ), [steps(n) for n in range(128)])


def test_values_that_swap_in_a_loop() -> None:
    body = """
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %k1, %loop ]
  %r = phi i32 [ %i, %entry ], [ %b, %loop ]
  %b = phi i32 [ 7, %entry ], [ %r, %loop ]
  %k1 = add i32 %k, 1
  %more = icmp ule i32 %k1, %tid
  br i1 %more, label %loop, label %done
done:"""
    i = np.arange(128)
    np.testing.assert_array_equal(words(body), np.where(i % 64 % 2, 7, i))


def test_a_switch() -> None:
    body = """
  %m = urem i32 %i, 5
  switch i32 %m, label %rest [
    i32 0, label %zero
    i32 3, label %three
    i32 4, label %zero
  ]
zero:
  br label %join
three:
  br label %join
rest:
  br label %join
join:
  %r = phi i32 [ 10, %zero ], [ 13, %three ], [ %m, %rest ]"""
    m = np.arange(128) % 5
    np.testing.assert_array_equal(words(body), np.choose(m, [10, 1, 2, 13, 10]))
    same = body.replace("urem i32 %i, 5", "urem i32 %ntid, 61")
    np.testing.assert_array_equal(words(same), 13)


def test_an_endless_loop() -> None:
    with pytest.raises(StepLimit, match="thread"):
        words(
            "\n  br label %loop\nloop:\n  br label %loop\nnever:\n  %r = add i32 0, 0", limit=1000
        )


def test_what_is_unreachable() -> None:
    body = "\n  %c = icmp eq i32 %i, 70\n  br i1 %c, label %bad, label %good\nbad:\n  unreachable"
    with pytest.raises(Undefined, match=r"unreachable\n.*\n  by thread \(6, 0, 0\) of block \(1"):
        words(body + "\ngood:\n  %r = add i32 0, 0")


def test_places() -> None:
    names = ["tid.x", "tid.y", "tid.z", "ctaid.x", "ctaid.y", "ctaid.z", "laneid", "nctaid.z"]
    names += ["ntid.y", "warpsize"]
    lines = [
        f"  %v{n} = call i32 @llvm.nvvm.read.ptx.sreg.{name}()" for n, name in enumerate(names)
    ]
    lines += ["  %r = add i32 %v{}, 0"]
    for n in range(len(names)):
        device = Device()
        out = device.room(4 * 24 * 6)
        slot = """
  %y = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %z = call i32 @llvm.nvvm.read.ptx.sreg.tid.z()
  %by = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %bz = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
  %z3 = mul i32 %z, 3
  %yz = add i32 %z3, %y
  %yz4 = mul i32 %yz, 4
  %in = add i32 %yz4, %tid
  %bz2 = mul i32 %bz, 1
  %byz = add i32 %bz2, %by
  %byz3 = mul i32 %byz, 3
  %b = add i32 %byz3, %bid
  %b24 = mul i32 %b, 24
  %place = add i32 %b24, %in"""
        text = kernel(
            slot + "\n" + "\n".join(lines).format(n) + STORE.replace("i32 %i\n", "i32 %place\n")
        )
        launch(parse(text), "k", (3, 1, 2), (4, 3, 2), [out], device.memory)
        bz, by, bx, z, y, x = np.indices((2, 1, 3, 2, 3, 4))
        expected = {
            "tid.x": x,
            "tid.y": y,
            "tid.z": z,
            "ctaid.x": bx,
            "ctaid.y": by,
            "ctaid.z": bz,
            "laneid": x + 4 * y + 12 * z,
            "nctaid.z": np.full_like(x, 2),
            "ntid.y": np.full_like(x, 3),
            "warpsize": np.full_like(x, 32),
        }[names[n]]
        found = device.memory.read(out, np.uint32, 144)
        np.testing.assert_array_equal(found, expected.reshape(-1))


# Functions


def test_functions() -> None:
    more = """
@table = internal dso_local constant [4 x i32] [i32 10, i32 20, i32 30, i32 40]
define internal i32 @looked_up(i32 %n) noinline {
  %at = and i32 %n, 3
  %p = getelementptr i32, ptr @table, i32 %at
  %v = load i32, ptr %p
  ret i32 %v
}
define internal i32 @chosen(i32 %n) alwaysinline {
  %odd = trunc i32 %n to i1
  br i1 %odd, label %yes, label %no
yes:
  %a = call i32 @looked_up(i32 %n)
  ret i32 %a
no:
  ret i32 %n
}
define internal { i32, i1 } @both(i32 %n) {
  %c = call i32 @chosen(i32 %n)
  %one = insertvalue { i32, i1 } poison, i32 %c, 0
  %two = insertvalue { i32, i1 } %one, i1 true, 1
  ret { i32, i1 } %two
}
"""
    body = """
  %s = call { i32, i1 } @both(i32 %i)
  %x = extractvalue { i32, i1 } %s, 0
  %j = add i32 %i, 1
  %y = call i32 @chosen(i32 %j)
  %r = add i32 %x, %y"""
    i = np.arange(128)

    def chosen(n: np.ndarray) -> np.ndarray:
        return np.where(n % 2, 10 + n % 4 * 10, n)

    np.testing.assert_array_equal(words(body, more=more), chosen(i) + chosen(i + 1))


def test_a_function_that_calls_itself() -> None:
    more = """
define internal i32 @f(i32 %n) {
  %z = icmp eq i32 %n, 0
  br i1 %z, label %end, label %on
on:
  %m = sub i32 %n, 1
  %v = call i32 @f(i32 %m)
  ret i32 %v
end:
  ret i32 0
}"""
    with pytest.raises(IRProblem, match="calls itself"):
        words("  %r = call i32 @f(i32 %i)", more=more)
    more = "define internal i32 @f(i32 %n) {\n  %v = call i32 @f(i32 %n)\n  ret i32 %v\n}"
    with pytest.raises(IRProblem, match="calls itself"):
        words("  %r = call i32 @f(i32 %i)", more=more)


def test_poison_that_a_phi_brings() -> None:
    body = DIAMOND.replace("[ %b, %no ]", "[ poison, %no ]")
    with pytest.raises(Undefined, match=r"poison(.*\n)*.*thread \(0, 0, 0\)"):
        words(body)
    kept = "\n  %s = select i1 %odd, i32 %r, i32 5\n"
    found = words((body + kept).replace("%r", "%q") + "  %r = add i32 %s, 1")
    i = np.arange(128)
    np.testing.assert_array_equal(found, np.where(i % 2, i * 3 + 1, 6))


# Memory


@pytest.mark.parametrize("align", [4, 8, 16])
def test_vectors_in_memory(align: int) -> None:
    device = Device()
    x = edges("float", 512)
    out = device.room(x.nbytes)
    body = f"""
  %p = getelementptr <4 x float>, ptr addrspace(1) %x, i32 %i
  %v = load <4 x float>, ptr addrspace(1) %p, align {align}
  %q = getelementptr [4 x float], ptr addrspace(1) %out, i32 %i, i32 0
  store <4 x float> %v, ptr addrspace(1) %q, align {align}
  ret void"""
    text = kernel(body, "ptr addrspace(1) %out, ptr addrspace(1) %x")
    device.run(text, 2, 64, out, device.put(x))
    found = device.memory.read(out, np.uint32, 512)
    np.testing.assert_array_equal(found, x.view(np.uint32))
    if align > 4:
        with pytest.raises(Misaligned, match=f"no multiple of {align}"):
            device.run(text, 1, 1, out + 4, device.put(x))
    else:
        device.run(text, 1, 1, out + 4, device.put(x))


def test_an_access_out_of_bounds() -> None:
    device = Device()
    out = device.room(4 * 100)
    text = kernel("  %r = add i32 %i, 0" + STORE)
    message = (
        r"out of bounds: 4 bytes at 0x\w+, 4 bytes beyond the end of the 400 bytes at 0x\w+\n"
        r"  in @k, line \d+: store i32 %r, ptr addrspace\(1\) %po, align 4\n"
        r"  by thread \(36, 0, 0\) of block \(1, 0, 0\)"
    )
    with pytest.raises(OutOfBounds, match=message):
        device.run(text, 2, 64, out)
    with pytest.raises(OutOfBounds, match="0x0"):
        device.run(text, 1, 1, 0)
    device.memory.free(out)
    with pytest.raises(OutOfBounds):
        device.run(text, 1, 1, out)


def test_what_was_never_written() -> None:
    text = kernel(
        """
  %p = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %r = load i32, ptr addrspace(1) %p, align 4"""
        + STORE,
        "ptr addrspace(1) %out, ptr addrspace(1) %x",
    )
    device = Device()
    x, out = device.room(4 * 64), device.room(4 * 64)
    device.memory.write(x, np.arange(63, dtype=np.uint32))
    with pytest.raises(Undefined, match=r"never written, 4 bytes at 0x(.*\n)*.*thread \(63, 0, 0"):
        device.run(text, 1, 64, out, x)
    with pytest.raises(LaunchProblem, match="never written"):
        device.memory.read(x, np.uint32, 64)
    loose = Device(strict=False)
    x, out = loose.room(4 * 64), loose.room(4 * 64)
    loose.run(text, 1, 64, out, x)
    assert (loose.memory.read(out, np.uint32, 64) == 0xCDCDCDCD).all()


def test_memory_of_the_host() -> None:
    memory = Memory()
    x = memory.alloc(16)
    memory.write(x, np.arange(4, dtype=np.int32))
    memory.write(x + 4, np.int32(9))
    memory.fill(x + 12, 4, 0xFF)
    assert memory.read(x, np.int32, (2, 2)).tolist() == [[0, 9], [2, -1]]
    for wrong in (
        lambda: memory.read(x, np.int32, 5),
        lambda: memory.write(x - 4, np.int32(1)),
        lambda: memory.free(x + 4),
        lambda: memory.alloc(4, align=3),
    ):
        with pytest.raises(LaunchProblem):
            wrong()
    empty = memory.alloc(0)
    memory.free(empty)
    memory.free(x)
    with pytest.raises(LaunchProblem):
        memory.read(x, np.int32, 1)


def test_local_memory() -> None:
    body = """
  %m = alloca [8 x i32], align 4
  %at = and i32 %i, 7
  %p = getelementptr [8 x i32], ptr %m, i32 0, i32 %at
  store i32 %i, ptr %p, align 4
  %q = getelementptr [8 x i32], ptr %m, i32 0, i32 {}
  %r = load i32, ptr %q, align 4"""
    np.testing.assert_array_equal(words(body.format("%at")), np.arange(128))
    with pytest.raises(Undefined, match=r"never written, 4 bytes at local(.*\n)*.*\(0, 0, 0\)"):
        words(body.format("3"))
    with pytest.raises(OutOfBounds, match=r"%m of @k(.*\n)*.*thread \(0, 0, 0\)"):
        words(body.format("8"))


def test_tables_end() -> None:
    more = "@t = internal addrspace(4) constant [3 x double] [double 1.0, double 2.0, double 4.0]"
    body = """
  %p = getelementptr double, ptr addrspace(4) @t, i32 %at
  %v = load double, ptr addrspace(4) %p
  %r = fptoui double %v to i32"""
    for at, expected in (("urem i32 %i, 3", 2 ** (np.arange(128) % 3)), ("add i32 1, 1", 4)):
        np.testing.assert_array_equal(words(f"  %at = {at}" + body, more=more), expected)
    with pytest.raises(OutOfBounds, match="@t"):
        words("  %at = urem i32 %i, 4" + body, more=more)
    with pytest.raises(OutOfBounds, match="constant @t"):
        words("  %r = add i32 1, 1\n  store i32 1, ptr addrspace(4) @t", more=more)


def test_pointers_into_several_memories() -> None:
    """Some threads read global memory, others shared, by one instruction."""
    more = "@s = internal addrspace(3) global [64 x i32] undef, align 16"
    body = """
  %ps = getelementptr i32, ptr addrspace(3) @s, i32 %tid
  store i32 %tid, ptr addrspace(3) %ps, align 4
  %g = addrspacecast ptr addrspace(3) %ps to ptr
  %px = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %h = addrspacecast ptr addrspace(1) %px to ptr
  %odd = trunc i32 %i to i1
  %p = select i1 %odd, ptr %g, ptr %h
  %v = load i32, ptr %p, align 4
  %r = add i32 %v, 1
  store i32 %r, ptr %p, align 4"""
    device = Device()
    x, out = np.arange(1000, 1128, dtype=np.uint32), device.room(4 * 128)
    at = device.put(x)
    text = kernel(body + STORE, "ptr addrspace(1) %out, ptr addrspace(1) %x", more)
    device.run(text, 2, 64, out, at)
    i = np.arange(128)
    expected = np.where(i % 2, i % 64 + 1, i + 1001)
    np.testing.assert_array_equal(device.memory.read(out, np.uint32, 128), expected)
    left = np.where(i % 2, x, x + 1)
    np.testing.assert_array_equal(device.memory.read(at, np.uint32, 128), left)
    wrong = text.replace("load i32, ptr %p", "load i32, ptr addrspace(3) %w").replace(
        "  %v = load", "  %w = addrspacecast ptr %p to ptr addrspace(3)\n  %v = load"
    )
    with pytest.raises(OutOfBounds, match="no address of space 3"):
        device.run(wrong, 2, 64, out, at)


def test_bools_in_memory() -> None:
    a = np.array([0, 1, 1, 0], np.uint8)
    body = "  %c = load i1, ptr addrspace(1) %ga\n  %r = xor i1 %c, true"
    same_bits(elementwise(body, "i1", ("i8", a)), a == 0)
    a[2] = 2
    with pytest.raises(Undefined, match="neither 0 nor 1"):
        elementwise(body, "i1", ("i8", a))


# Blocks and warps


REDUCTION = """
  %ps = getelementptr float, ptr addrspace(3) @shared, i32 %tid
  %px = getelementptr float, ptr addrspace(1) %x, i32 %i
  %v = load float, ptr addrspace(1) %px, align 4
  store float %v, ptr addrspace(3) %ps, align 4
  br label %loop
loop:
  %s = phi i32 [ 64, %entry ], [ %half, %next ]
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %on = icmp ult i32 %tid, %s
  br i1 %on, label %add, label %next
add:
  %at = add i32 %tid, %s
  %pt = getelementptr float, ptr addrspace(3) @shared, i32 %at
  %a = load float, ptr addrspace(3) %ps, align 4
  %b = load float, ptr addrspace(3) %pt, align 4
  %c = fadd float %a, %b
  store float %c, ptr addrspace(3) %ps, align 4
  br label %next
next:
  %half = lshr i32 %s, 1
  %more = icmp ne i32 %half, 0
  br i1 %more, label %loop, label %last
last:
  %first = icmp eq i32 %tid, 0
  br i1 %first, label %write, label %end
write:
  %r = load float, ptr addrspace(3) @shared, align 4
  %po = getelementptr float, ptr addrspace(1) %out, i32 %bid
  store float %r, ptr addrspace(1) %po, align 4
  br label %end
end:
  ret void"""
TWO = "ptr addrspace(1) %out, ptr addrspace(1) %x"


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_reduction_in_shared_memory(dynamic: bool) -> None:
    more = "@shared = internal addrspace(3) global [128 x float] undef, align 16"
    if dynamic:
        more = "@shared = external addrspace(3) global [0 x i8], align 16"
    device = Device()
    x = np.random.default_rng(0).standard_normal((5, 128)).astype(np.float32)
    out = device.room(4 * 5)
    text = kernel(REDUCTION, TWO, more)
    how: dict[str, Any] = {"shared_bytes": 512} if dynamic else {}
    device.run(text, 5, 128, out, device.put(x), **how)
    held = x.copy()
    for step in (64, 32, 16, 8, 4, 2, 1):
        held[:, :step] += held[:, step : 2 * step]
    same_bits(device.memory.read(out, np.float32, 5), held[:, 0].copy())
    if dynamic:
        with pytest.raises(OutOfBounds, match=r"@shared(.*\n)*.*thread \(127, 0, 0\)"):
            device.run(text, 5, 128, out, device.put(x), shared_bytes=508)


def test_shuffles() -> None:
    lane = np.arange(128) % 32
    first = np.arange(128) - lane
    for kind, by, clamp, source in (
        ("bfly", 5, 31, lane ^ 5),
        ("idx", 7, 31, np.full(128, 7)),
        ("down", 3, 31, np.where(lane + 3 < 32, lane + 3, lane)),
        ("up", 3, 0, np.where(lane >= 3, lane - 3, lane)),
        ("idx", 9, 0x1807, lane // 8 * 8 + 1),
        ("down", 2, 0x181F, np.where(lane % 8 < 6, lane + 2, lane)),
    ):
        body = f"  %r = call i32 @llvm.nvvm.shfl.sync.{kind}.i32(i32 -1, i32 %i, i32 {by}, "
        body += f"i32 {clamp})"
        np.testing.assert_array_equal(words(body), first + source)
    body = """
  %f = uitofp i32 %i to float
  %g = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %f, i32 1, i32 31)
  %r = fptoui float %g to i32"""
    np.testing.assert_array_equal(words(body), np.arange(128) ^ 1)
    body = """
  %s = call { i32, i1 } @llvm.nvvm.shfl.sync.down.i32p(i32 -1, i32 %i, i32 4, i32 31)
  %p = extractvalue { i32, i1 } %s, 1
  %r = zext i1 %p to i32"""
    np.testing.assert_array_equal(words(body), lane < 28)


def test_votes() -> None:
    body = "  %odd = trunc i32 %i to i1\n"
    for kind, ty, expected in (
        ("any", "i1", 1),
        ("all", "i1", 0),
        ("ballot", "i32", 0xAAAAAAAA),
        ("uni", "i1", 0),
    ):
        call = f"  %v = call {ty} @llvm.nvvm.vote.{kind}.sync(i32 -1, i1 %odd)\n"
        made = "  %r = zext i1 %v to i32" if ty == "i1" else "  %r = add i32 %v, 0"
        np.testing.assert_array_equal(words(body + call + made), expected)
    found = words("  %r = call i32 @llvm.nvvm.redux.sync.add(i32 %i, i32 -1)")
    np.testing.assert_array_equal(found, np.repeat(np.arange(128).reshape(4, 32).sum(1), 32))


PART = """
  %lane = and i32 %i, 31
  %on = icmp ult i32 %lane, 16
  br i1 %on, label %yes, label %end
yes:
  %v = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 {}, i32 %i, i32 1, i32 31)
  br label %end
end:
  %r = phi i32 [ %i, %entry ], [ %v, %yes ]"""


def test_a_shuffle_that_not_all_take_part_in() -> None:
    with pytest.raises(Divergence, match=r"lanes \[16, 17, .*31\] of the mask are not at this"):
        words(PART.format(-1))
    i = np.arange(128)
    np.testing.assert_array_equal(words(PART.format(65535)), np.where(i % 32 < 16, i ^ 1, i))
    with pytest.raises(Divergence, match="not in its own mask"):
        words(PART.format(255))


def test_a_shuffle_in_a_part_of_a_warp() -> None:
    """A block of 40 threads: lanes of its second warp that were never there can't be read."""
    body = "  %r = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %i, i32 {}, i32 31)"
    np.testing.assert_array_equal(words(body.format(1), 1, 40), np.arange(40) ^ 1)
    with pytest.raises(Undefined, match="lane 8"):
        words(body.format(8), 1, 40)


# Atomic operations


@pytest.mark.parametrize("places", [1, 3, 100])
@pytest.mark.parametrize(
    "kind", ["add", "sub", "and", "or", "xor", "max", "min", "umax", "umin", "xchg", "uinc_wrap"]
)
def test_atomics(kind: str, places: int) -> None:
    count = 640
    given = edges("i32", count)
    if kind == "uinc_wrap":
        given = np.full(count, 37, np.uint32)
    device = Device()
    at = device.put(np.arange(5, 5 + places, dtype=np.uint32))
    found = device.room(4 * count)
    text = kernel(
        f"""
  %px = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %v = load i32, ptr addrspace(1) %px, align 4
  %m = urem i32 %i, {places}
  %p = getelementptr i32, ptr addrspace(1) %c, i32 %m
  %r = atomicrmw {kind} ptr addrspace(1) %p, i32 %v monotonic, align 4"""
        + STORE,
        "ptr addrspace(1) %out, ptr addrspace(1) %x, ptr addrspace(1) %c",
    )
    device.run(text, 10, 64, found, device.put(given), at)
    held = list(range(5, 5 + places))
    old = []

    def low(v: int) -> int:
        return v % 2**32

    def sign(v: int) -> int:
        return v - 2**32 if v >> 31 else v

    for n, v in enumerate(map(int, given)):
        x = held[n % places]
        old.append(x)
        held[n % places] = {
            "add": low(x + v),
            "sub": low(x - v),
            "and": x & v,
            "or": x | v,
            "xor": x ^ v,
            "max": low(max(sign(x), sign(v))),
            "min": low(min(sign(x), sign(v))),
            "umax": max(x, v),
            "umin": min(x, v),
            "xchg": v,
            "uinc_wrap": 0 if x >= v else x + 1,
        }[kind]
    np.testing.assert_array_equal(device.memory.read(found, np.uint32, count), old)
    np.testing.assert_array_equal(device.memory.read(at, np.uint32, places), held)


@pytest.mark.parametrize("places", [1, 7])
def test_atomic_sums_of_floats_round_each_time(places: int) -> None:
    count = 1024
    x = np.random.default_rng(1).standard_normal(count).astype(np.float32)
    device = Device()
    at = device.put(np.zeros(places, np.float32))
    text = kernel(
        f"""
  %px = getelementptr float, ptr addrspace(1) %x, i32 %i
  %v = load float, ptr addrspace(1) %px, align 4
  %m = urem i32 %i, {places}
  %p = getelementptr float, ptr addrspace(1) %out, i32 %m
  %old = atomicrmw fadd ptr addrspace(1) %p, float %v syncscope("device") monotonic, align 4
  ret void""",
        TWO,
    )
    device.run(text, 4, 256, at, device.put(x))
    held = np.zeros(places, np.float32)
    for n, v in enumerate(x):
        held[n % places] += v
    same_bits(device.memory.read(at, np.float32, places), held)


def test_compare_and_exchange() -> None:
    """Each thread adds its number by a loop, as one would without an instruction for it."""
    device = Device()
    at = device.put(np.zeros(3, np.uint64))
    text = kernel(
        """
  %w = zext i32 %i to i64
  %m = urem i32 %i, 3
  %p = getelementptr i64, ptr addrspace(1) %out, i32 %m
  br label %loop
loop:
  %old = phi i64 [ 0, %entry ], [ %found, %loop ]
  %new = add i64 %old, %w
  %s = cmpxchg ptr addrspace(1) %p, i64 %old, i64 %new monotonic monotonic, align 8
  %found = extractvalue { i64, i1 } %s, 0
  %done = extractvalue { i64, i1 } %s, 1
  br i1 %done, label %end, label %loop
end:
  ret void"""
    )
    device.run(text, 2, 32, at)
    np.testing.assert_array_equal(
        device.memory.read(at, np.uint64, 3), [sum(range(n, 64, 3)) for n in range(3)]
    )


# What has no effect here, and what is not exact


def test_what_does_nothing() -> None:
    body = """
  call void @llvm.nvvm.griddepcontrol.launch.dependents()
  call void asm sideeffect "griddepcontrol.wait;", "~{memory}"()
  fence syncscope("device") seq_cst
  call void @llvm.nvvm.membar.gl()
  call void @llvm.assume(i1 true)
  %r = add i32 %i, 0"""
    np.testing.assert_array_equal(words(body), np.arange(128))
    with pytest.raises(Undefined, match="assumed"):
        words(body.replace("i1 true", "i1 false"))


def test_what_only_the_hardware_knows() -> None:
    body = """
  %f = uitofp i32 %i to float
  %e = call float @llvm.nvvm.ex2.approx.ftz.f32(float %f)
  %q = call float @llvm.nvvm.rcp.approx.ftz.f(float %e)
  %h = fmul float %q, %e
  %r = fptoui float %h to i32"""
    with pytest.raises(Inexact, match=r"not exact: llvm.nvvm.ex2.approx.ftz.f32(.*\n)*.*line"):
        words(body, 1)
    found = words(body, 1, approximate=True)
    np.testing.assert_array_equal(found, 1)


# Text that is refused, and launches


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%r = wobble i32 %i, 1", "no instruction 'wobble'"),
        ("%r = call i32 @llvm.wobble.i32(i32 %i)", "llvm.wobble.i32', which is not known"),
        ("%r = call i32 @printf(i32 %i)", "'printf', which is not known"),
        ("%r = add i32 %i, %nobody", "no i32 %nobody is defined"),
        ("%r = add i64 %i, 1", "no i64 %i is defined"),
        ("%r = add i32 %i, 1 wobble", "not understood: 'wobble'"),
        ("%r = add i24 %i, 1", "i24 is not supported"),
        ("%r = add i32 %i, @nothing", "no global @nothing"),
        ("%i = add i32 1, 1\n  %r = add i32 1, 1", "%i is defined twice"),
        ("br label %nowhere\nx:\n  %r = add i32 1, 1", "no block %nowhere"),
        ("%r = shl i32 %i", "expected ','"),
        ("%r = trunc i32 %i to <2 x i8>", "trunc of i32 to <2 x i8>"),
        ("%v = atomicrmw nand ptr addrspace(1) %out, i32 1 monotonic", "nand is not supported"),
    ],
)
def test_text_that_is_refused(line: str, message: str) -> None:
    with pytest.raises(IRProblem) as found:
        words(f"  {line}")
    assert message in str(found.value)
    assert "in @k, line" in str(found.value)


def test_a_value_that_is_not_always_defined() -> None:
    body = DIAMOND.replace("%r = phi i32 [ %a, %yes ], [ %b, %no ]", "%r = add i32 %a, 0")
    with pytest.raises(IRProblem, match="%a of @k is used before it is defined"):
        words(body)


def test_launches_that_are_refused() -> None:
    text = kernel("  ret void", "ptr addrspace(1) align 16 %out").replace(
        ") {\n", ') "nvvm.maxntid"="64" {\n'
    )
    module, memory = parse(text), Memory()
    launch(module, "k", (1, 1, 1), (64, 1, 1), [32], memory)
    assert parse(text) is module
    for name, grid, block, args, message in (
        ("k", (1, 1, 1), (65, 1, 1), [0], "65 threads"),
        ("k", (1, 1, 1), (64, 1, 1), [8], "16 does not divide"),
        ("k", (1, 1, 1), (64, 1, 1), [], "takes 1 arguments"),
        ("k", (0, 1, 1), (64, 1, 1), [0], "grid"),
        ("other", (1, 1, 1), (64, 1, 1), [0], "no kernel"),
    ):
        with pytest.raises(LaunchProblem, match=message):
            launch(module, name, grid, block, args, memory)


def test_arguments_are_the_low_bits_of_words() -> None:
    device = Device()
    out = device.room(32)
    text = """
define ptx_kernel void @k(ptr addrspace(1) %out, float %f, i32 %n, double %d, i8 %b) {
  %q = getelementptr i8, ptr addrspace(1) %out, i64 8
  %s = getelementptr i8, ptr addrspace(1) %out, i64 16
  %t = getelementptr i8, ptr addrspace(1) %out, i64 24
  store float %f, ptr addrspace(1) %out
  store i32 %n, ptr addrspace(1) %q
  store double %d, ptr addrspace(1) %s
  store i8 %b, ptr addrspace(1) %t
  ret void
}
"""
    single = int(np.float32(1.5).view(np.uint32)) | 0xABC << 32
    double = int(np.float64(-2.5).view(np.uint64))
    device.run(text, 1, 1, out, single, -1, double, 0x1FF)
    assert device.memory.read(out, np.float32, 1) == 1.5
    assert device.memory.read(out + 8, np.int32, 1) == -1
    assert device.memory.read(out + 16, np.float64, 1) == -2.5
    assert device.memory.read(out + 24, np.uint8, 1) == 255
