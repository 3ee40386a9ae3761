"""Text that tiles of matrices and of vectors share: loads of parameters, and addresses."""

from __future__ import annotations

from tenfold.backends.cpu.library.blas import NOT_TRANSPOSED

QUICK = "nounwind noinline optnone"  # to compile: the work lies in what is called


def words(*names: str) -> str:
    """Loads of the numbers behind the kind of a product and its time, in order."""
    return "".join(
        f"  %{name}.at = getelementptr i64, ptr %params, i64 {at}\n"
        f"  %{name} = load i64, ptr %{name}.at, align 8\n"
        for at, name in enumerate(names, 2)
    )


def trans(name: str, flag: str) -> str:
    """What BLAS calls a flag: a matrix as it is, or transposed."""
    return (
        f"  %{name}.long = add i64 {flag}, {NOT_TRANSPOSED}\n"
        f"  %{name} = trunc i64 %{name}.long to i32\n"
    )


def least(name: str, step: str, end: str, start: str) -> str:
    """The extent of a tile: its full one, or what is left."""
    return (
        f"  %{name}.left = sub i64 {end}, {start}\n"
        f"  %{name} = call i64 @llvm.umin.i64(i64 {step}, i64 %{name}.left)\n"
    )


def moved(name: str, base: str, *terms: tuple[str, str]) -> str:
    """An address moved by products of counts and bytes."""
    text = ""
    for at, (count, step) in enumerate(terms):
        text += f"  %{name}.by{at} = mul i64 {count}, {step}\n"
        to = name if at == len(terms) - 1 else f"{name}.to{at}"
        text += f"  %{to} = getelementptr i8, ptr {base}, i64 %{name}.by{at}\n"
        base = f"%{to}"
    return text


def operands(*names: str) -> str:
    """Loads of the addresses of the operands and of the result."""
    return "".join(
        f"  %{name}.buffer = getelementptr ptr, ptr %buffers, i64 {at}\n"
        f"  %{name} = load ptr, ptr %{name}.buffer, align 8\n"
        for at, name in enumerate(names)
    )
