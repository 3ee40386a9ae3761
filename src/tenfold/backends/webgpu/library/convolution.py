"""Convolutions without padding, over one to three axes.

They go by tiles, as a product for each group: rows are its out channels, columns the places of the
result in all images, terms the channels of the group times the places of the kernel. The input is
not laid out for that: an invocation reads what its columns need as it lies, by the place where a
column begins and the offset of each term, which a first entry point has put into memory. With no
more than `FEW` out channels in a group a tile would be mostly empty: there each invocation has one
element of the result.

Terms are cut into parts as those of products are. It hangs on shapes and dtypes alone.
"""

from __future__ import annotations

from tenfold.backends.convolutions import OFFSETS, PLACES, Convolution
from tenfold.backends.matrices import MatrixProduct
from tenfold.backends.webgpu.library.elements import Array, bits_of
from tenfold.backends.webgpu.library.module import RoutineText
from tenfold.backends.webgpu.library.product_tiles import ENOUGH, FARTHEST, SPAN, cut_of
from tenfold.backends.webgpu.library.routine import Launch, Routine
from tenfold.backends.webgpu.library.tiles import (
    WORKGROUP,
    TileWriter,
    add_parts,
    parts_launch,
    tile_text,
    tiling,
)
from tenfold.backends.webgpu.target import WebGPUTarget

FEW = 4  # out channels of a group
_AHEAD = 4  # terms that are read at a time
_FIND = "find_offsets"  # an entry point
_DIRECT = ("results", "k", "parts", "span", "outs", "rows", "own", *PLACES, *OFFSETS)


def convolution_routine(c: Convolution, target: WebGPUTarget) -> Routine | None:
    """The routine of a convolution, if the adapter has such numbers."""
    if not getattr(target, {"u64": "i64"}.get(c.dtype, c.dtype), True):
        return None
    return direct_routine(c) if c.rows <= FEW else tiled_routine(c, target)


def tiled_routine(
    c: Convolution, target: WebGPUTarget, cut: tuple[int, int] | None = None
) -> Routine:
    """By tiles of this extent, and terms cut so; else as a product would be."""
    p = MatrixProduct((c.dtype,) * 3, c.groups, c.rows, c.columns, c.terms, False, False)
    made = tiling(p, cut or cut_of(p), target)
    words = ("own", *PLACES, *OFFSETS)
    text = tile_text(made.form, words, ["offsets"], names="ba")
    _Seen(made.form, text).write()
    _add_offsets(text)
    launches = made.launches((c.own, *_words(c)))
    first = Launch(_FIND, -(-c.terms // WORKGROUP), launches[0].words)
    scratch = (*made.scratch, 4 * c.terms)
    shader = text.finish(made.form.words)
    return Routine(shader, (first, *launches), _largest(c), scratch)


def direct_routine(c: Convolution, parts: int = 0) -> Routine:
    """An element of the result by each invocation; terms are cut into parts where there are few
    results."""
    if not parts:
        wanted = min(c.terms // SPAN, ENOUGH * WORKGROUP // c.results)
        parts = max(1, wanted, -(-c.terms // FARTHEST))
    span = -(-c.terms // parts)
    parts = -(-c.terms // span)
    words = (c.results, c.terms, parts, span, c.rows * c.groups, c.rows, c.own)
    main = Launch("main", -(-parts * c.results // WORKGROUP), (*words, *_words(c)))
    launches = [Launch(_FIND, -(-c.terms // WORKGROUP), main.words), main]
    arrays = [Array("b", c.dtype), Array("a", c.dtype), Array("c", c.dtype, written=True)]
    sums = [("s", c.dtype)] if parts > 1 else []
    text = RoutineText(arrays, _DIRECT, WORKGROUP, [*sums, ("offsets", "u32")])
    text.entry("main", _direct(c.dtype, parts > 1))
    scratch = [4 * c.terms]
    if parts > 1:
        add_parts(text, c.dtype)
        launches.append(parts_launch(c.results, parts, len(_DIRECT)))
        scratch.insert(0, parts * c.results * bits_of(c.dtype) // 8)
    _add_offsets(text)
    how = "an invocation for each element"
    shader = text.finish(how + ", parts of terms added in order" * (parts > 1))
    return Routine(shader, tuple(launches), _largest(c), tuple(scratch))


def _words(c: Convolution) -> tuple[int, ...]:
    """The values of `PLACES` and `OFFSETS`; steps that take more than a word are never taken."""
    return tuple(n if n < 1 << 32 else 0 for n in (*c.places, *c.offsets))


def _largest(c: Convolution) -> int:
    """The bytes of the largest array."""
    kernel = c.groups * c.rows * c.terms
    seen = c.images * c.groups * c.own
    return max(seen, kernel, c.results) * bits_of(c.dtype) // 8


def _add_offsets(text: RoutineText) -> None:
    """The entry point that puts the offset of each term, from where a column begins, into
    memory."""
    text.entry(
        _FIND,
        [
            f"let term = number * {WORKGROUP}u + lid;",
            "if (term >= k) { return; }",
            "let tap = term % taps;",
            "let last = tap % kernel2;",
            "let middle = tap / kernel2 % kernel1;",
            "let far = tap / kernel2 / kernel1;",
            "let inner = far * apart0 + middle * apart1 + last * apart2;",
            "offsets[term] = term / taps * channel + inner;",
        ],
    )


def _begins(place: str, image: str) -> str:
    """Where the input that a place of the result sees begins, from the group's own."""
    last, middle = f"{place} % out2", f"{place} / out2 % out1"
    far = f"{place} / out2 / out1"
    steps = f"({far}) * step0 + ({middle}) * step1 + ({last}) * step2"
    return f"({image}) * image + {steps}"


class _Seen(TileWriter):
    """Of the kernel, and the input as columns of terms."""

    row = "plane"

    def begun(self) -> list[str]:
        """Where they begin: those of an invocation are the same for all terms."""
        lines = []
        _, line = self._spot("b", 0)
        for c in range(self.width):
            lines.append(f"let at{c} = first + {line} + {self.stretch * c}u;")
            begins = _begins(f"(at{c} % plane)", f"at{c} / plane")
            lines.append(f"let seen{c} = which * own + {begins};")
        return lines

    def apart(self) -> list[str]:
        return ["let far = offsets[min(term, k - 1u)];"]

    def right(self, c: int) -> str:
        return self.get("b", f"seen{c} + far")

    def column(self, column: str) -> str:
        return f"({column} / plane) * (batch * m * plane) + {column} % plane"


def _direct(ty: str, split: bool) -> list[str]:
    """The entry point of an element of the result, or of a part of its sum."""

    def added(x: str, y: str) -> str:
        return f"sum = fma({x}, {y}, sum);" if ty in ("f32", "f64") else f"sum += {x} * {y};"

    def read(n: int) -> tuple[str, str]:
        return f"get_b(seen + offsets[term + {n}u])", f"get_a(kernel + term + {n}u)"

    lines = [
        f"let at = number * {WORKGROUP}u + lid;",
        "if (at >= results * parts) { return; }",
        "let result = at % results;",
        "let part = at / results;",
        "let place = result % plane;",
        "let out = result / plane % outs;",
        f"let seen = out / rows * own + {_begins('place', 'result / plane / outs')};",
        "let kernel = out * k;",
        "let end = min((part + 1u) * span, k);",
        "var term = part * span;",
        f"var sum = {ty}();",
        f"for (; term + {_AHEAD - 1}u < end; term += {_AHEAD}u) {{",
    ]
    pairs = [read(n) for n in range(_AHEAD)]
    lines += [f"  let x{n} = {x}; let y{n} = {y};" for n, (x, y) in enumerate(pairs)]
    lines += [f"  {added(f'x{n}', f'y{n}')}" for n in range(_AHEAD)]
    lines += ["}", "for (; term < end; term++) {", f"  {added(*read(0))}", "}"]
    return [*lines, "s[at] = sum;" if split else "set_c(at, sum);"]
