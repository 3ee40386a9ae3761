"""What LLVM gets wrong for GPUs is printed in other words there, and nowhere else."""

from __future__ import annotations

import pytest

from tenfold.backends.cuda.target import named
from tenfold.backends.llvm.instructions import instruction
from tenfold.backends.llvm.target import LLVMTarget, target_with
from tenfold.backends.llvm.writer import Writer

GPU = named("sm_90").llvm
HOST = target_with("x86_64-unknown-linux-gnu", ["avx2", "fma"])


def printed(target: LLVMTarget, op: str, dtype: str, *args: str) -> str:
    w = Writer(target)
    instruction(w, op, dtype, [dtype] * len(args), args, False)
    return "\n".join(w.lines)


@pytest.mark.parametrize("op", ["shl", "shr"])
@pytest.mark.parametrize(("dtype", "mask"), [("u64", 63), ("i32", 31), ("u8", 7)])
def test_amounts_of_shifts_are_masked(op: str, dtype: str, mask: int) -> None:
    """LLVM drops a test of the amount that stands before a shift of 64 bits."""
    assert f"%by, {mask}\n" in printed(GPU, op, dtype, "%x", "%by")
    assert "and" not in printed(GPU, op, dtype, "%x", "3")
    assert "and" not in printed(HOST, op, dtype, "%x", "%by")


@pytest.mark.parametrize("zero", ["0x0000000000000000", "0x8000000000000000"])
def test_what_is_compared_with_zero_is_no_maximum(zero: str) -> None:
    assert "fence" in printed(GPU, "gt", "f32", "%x", zero)
    assert "fence" in printed(GPU, "lt", "f64", zero, "%x")
    assert "fence" not in printed(GPU, "gt", "f32", "%x", "%y")
    assert "fence" not in printed(HOST, "gt", "f32", "%x", zero)


def test_what_an_absolute_value_is_made_of_is_not_seen() -> None:
    assert "asm" in printed(GPU, "shr", "i16", "%x", "15")
    assert "asm" not in printed(GPU, "shr", "i32", "%x", "31")
    assert "asm" not in printed(GPU, "shr", "u16", "%x", "15")
    assert "asm" not in printed(HOST, "shr", "i16", "%x", "15")
