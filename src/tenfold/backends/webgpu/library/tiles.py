"""How a workgroup multiplies: a square tile of the result in the registers of 16 by 16 invocations.

Each invocation has so many rows and columns of the tile. The workgroup goes along the terms 16 at a
time: these are brought into shared memory, term after term, while the ones before are multiplied.
Shared memory holds vectors of lines a stretch apart, so that neighbours among invocations bring
and store what lies side by side.

An invocation adds up its terms one after the other. Terms may be cut into parts, each of which has
workgroups of its own; a second entry point adds up the parts in their order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from tenfold.backends.matrices import MatrixProduct
from tenfold.backends.webgpu.library.elements import Array, bits_of, computed
from tenfold.backends.webgpu.library.module import RoutineText
from tenfold.backends.webgpu.library.routine import Launch
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.frozen import frozen

DEEP = 16  # terms at a time
_SIDE = 16  # invocations along a side of a tile
WORKGROUP = _SIDE * _SIDE
WORDS = ("m", "n", "k", "across", "tiles", "batch", "groups", "span")


@frozen
class TileForm:
    """What the text of a product by tiles hangs on."""

    dtypes: tuple[str, str, str]
    extent: int
    left: bool  # whether an operand lies transposed
    right: bool
    split: bool  # whether terms are cut into parts
    padded: bool  # whether lines of shared memory are longer than a tile, against conflicts

    @property
    def words(self) -> str:
        return f"tiles of {self.extent}²" + ", parts of terms added in order" * self.split


@frozen
class Tiling:
    """A product by tiles of an extent, its terms cut into parts of a span."""

    form: TileForm
    words: tuple[int, ...]  # of the entry point
    groups: int
    parts: int
    results: int

    @property
    def scratch(self) -> tuple[int, ...]:
        """The bytes of the sums of parts."""
        size = bits_of(computed(self.form.dtypes[2])) // 8
        return (self.parts * self.results * size,) if self.form.split else ()

    def launches(self, more: Sequence[int] = ()) -> list[Launch]:
        """With further words."""
        words = (*self.words, *more)
        made = [Launch("main", self.groups, words)]
        if self.form.split:
            made.append(parts_launch(self.results, self.parts, len(words)))
        return made


def tiling(p: MatrixProduct, cut: tuple[int, int], target: WebGPUTarget) -> Tiling:
    """A product by tiles of an extent, terms cut so."""
    extent, span = cut
    parts = -(-p.k // span)
    down, across = -(-p.m // extent), -(-p.n // extent)
    size = bits_of(computed(p.dtype)) // 8
    padded = 2 * DEEP * (extent + _width(extent)) * size <= target.workgroup_bytes
    form = TileForm(p.dtypes, extent, p.left, p.right, parts > 1, padded)
    groups = p.batch * parts * down * across
    words = (p.m, p.n, p.k, across, down * across, p.batch, groups, span)
    return Tiling(form, words, groups, parts, p.batch * p.m * p.n)


def tile_text(
    form: TileForm,
    words: Sequence[str] = (),
    scratch: Sequence[str] = (),
    names: str = "ab",
    parts: int = 1,
) -> RoutineText:
    """The text of a shader that multiplies, with further words, and memory of u32 between its
    dispatches behind that of parts. `names` of what is given: the left operand is a. What is given
    has elements of so many parts."""
    dtypes = dict(zip("abc", form.dtypes, strict=True))
    arrays = [Array(name, dtypes[name], written=name == "c", parts=parts) for name in (*names, "c")]
    sums = [("s", computed(dtypes["c"]))] if form.split else []
    between = [*sums, *((name, "u32") for name in scratch)]
    return RoutineText(arrays, (*WORDS, *words), WORKGROUP, between)


def parts_launch(results: int, parts: int, words: int) -> Launch:
    """What adds up parts: its words stand where those of the other entry point stand."""
    own = (results, parts, *[0] * (words - 2))
    return Launch("add_parts", -(-results // WORKGROUP), own)


def add_parts(text: RoutineText, ty: str) -> None:
    """The entry point that adds up the sums of parts, in order."""
    results, parts = text.words[:2]
    text.entry(
        "add_parts",
        [
            f"let at = number * {WORKGROUP}u + lid;",
            f"if (at >= {results}) {{ return; }}",
            "var sum = s[at];",
            f"for (var part = 1u; part < {parts}; part++) {{",
            f"  sum += s[part * {results} + at];",
            "}",
            "set_c(at, sum);",
        ],
    )


def _width(extent: int) -> int:
    """Elements of a vector of shared memory."""
    return min(4, extent // _SIDE)


class TileWriter(ABC):
    """What writes the entry points of a product by tiles. Where columns lie says a class below."""

    row = "n"  # elements of the result from a row to the next

    def __init__(self, form: TileForm, text: RoutineText) -> None:
        self.form, self.text = form, text
        self.each = form.extent // _SIDE  # rows, and columns, of an invocation
        self.width = _width(form.extent)
        self.stretch = form.extent // self.width  # from an element of a vector to the next
        self.ty = computed(form.dtypes[2])
        self.vector = f"vec{self.width}<{self.ty}>" if self.width > 1 else self.ty
        # Vectors are written as a whole: who writes one element of one may write all of it.
        self.pitch = self.stretch + form.padded
        for name in ("left", "right"):
            text.share(name, self.vector, DEEP * self.pitch)

    @abstractmethod
    def right(self, c: int) -> str:
        """The right operand at `term` and `line`, which is element `c` of a vector."""

    def left(self) -> str:
        """The left operand there."""
        inner = "line * k + term" if self.beside("a") else "term * m + line"
        return self.get("a", f"which * m * k + {inner}")

    def get(self, side: str, place: str) -> str:
        """An element of an operand, as it is computed with."""
        dtype = self.form.dtypes["ab".index(side)]
        found = f"get_{side}({place})"
        return found if computed(dtype) == self.ty else f"bitcast<{self.ty}>({found})"

    def begun(self) -> list[str]:
        """What is found out of columns before the first term."""
        return []

    def apart(self) -> list[str]:
        """What is found out of `term`, of the right operand."""
        return []

    def column(self, column: str) -> str:
        """Where a column lies in the result, from where a row begins."""
        return column

    def write(self) -> None:
        self.text.entry("main", self._lines())
        if self.form.split:
            add_parts(self.text, self.ty)

    def _lines(self) -> list[str]:
        groups = range(self.each // self.width)
        rows = [(g, c) for g in groups for c in range(self.width)]
        lines = [
            "let me = min(number, groups - 1u);",
            "let tile = me % tiles;",
            "let many = me / tiles;",
            "let which = many % batch;",
            f"let top = (tile / across) * {self.form.extent}u;",
            f"let first = (tile % across) * {self.form.extent}u;",
            "let begin = (many / batch) * span;",
            "let end = min(begin + span, k);",
            f"let tx = lid % {_SIDE}u;",
            f"let ty = lid / {_SIDE}u;",
            *self.begun(),
        ]
        lines += [f"var sum{g}_{c}_{h} = {self.vector}();" for g, c in rows for h in groups]
        lines += [f"var {side}{g}_{c}: {self.ty};" for side in "ab" for g, c in rows]
        lines += ["var at = begin;", *self._brought(), "loop {"]
        inner = ["workgroupBarrier();", *self._kept(), "workgroupBarrier();"]
        inner += [f"at += {DEEP}u;", *self._brought()]
        inner += [f"for (var step = 0u; step < {DEEP}u; step++) {{"]
        for g in groups:
            place = f"step * {self.pitch}u + {_SIDE * g}u"
            inner.append(f"  let x{g} = left[{place} + ty];")
            inner.append(f"  let y{g} = right[{place} + tx];")
        for g, c in rows:
            x = f"{self.vector}(x{g}[{c}])" if self.width > 1 else f"x{g}"
            for h in groups:
                inner.append(f"  {self._added(f'sum{g}_{c}_{h}', x, f'y{h}')}")
        inner += ["}", "if (at >= end) { break; }"]
        return [*lines, *(f"  {line}" for line in inner), "}", *self._stored(rows)]

    def _stored(self, places: Sequence[tuple[int, int]]) -> list[str]:
        """The sums in the result, or those of a part where it would have them."""
        lines = []
        for h, d in places:
            lines.append(f"let column{h}_{d} = first + {self._near(h, d)}u + tx;")
            lines.append(f"let to{h}_{d} = {self.column(f'column{h}_{d}')};")
        part = "(many / batch) * batch * m * n + " * self.form.split
        for g, c in places:
            lines.append("{")
            lines.append(f"  let row = top + {self._near(g, c)}u + ty;")
            lines.append(f"  let line = {part}(which * m + row) * {self.row};")
            for h, d in places:
                held = f"sum{g}_{c}_{h}"
                value, place = f"{held}[{d}]" if self.width > 1 else held, f"line + to{h}_{d}"
                kept = f"s[{place}] = {value};" if self.form.split else f"set_c({place}, {value});"
                lines.append(f"  if (row < m && column{h}_{d} < n) {{ {kept} }}")
            lines.append("}")
        return lines

    def _near(self, group: int, c: int) -> int:
        """The first line of a group of vectors, of one of their elements."""
        return self.stretch * c + _SIDE * group

    def _added(self, held: str, x: str, y: str) -> str:
        if self.ty in ("f32", "f64"):
            return f"{held} = fma({x}, {y}, {held});"
        return f"{held} += {x} * {y};"

    def _spot(self, side: str, n: int) -> tuple[str, str]:
        """The term, counted in the tile, and the first line of what an invocation brings:
        neighbours bring what lies side by side in memory."""
        number = f"(lid + {WORKGROUP * n}u)"
        if self.beside(side):
            return f"{number} % {DEEP}u", f"{number} / {DEEP}u"
        return f"{number} / {self.stretch}u", f"{number} % {self.stretch}u"

    def beside(self, side: str) -> bool:
        """Whether the terms of an operand's line lie side by side."""
        return self.form.right if side == "b" else not self.form.left

    def _brought(self) -> list[str]:
        """Elements of the next terms, 0 beyond the end of them and of lines."""
        lines = []
        for side, first, extent in (("a", "top", "m"), ("b", "first", "n")):
            for n in range(self.each // self.width):
                step, line = self._spot(side, n)
                lines += ["{", f"  let term = at + {step};"]
                lines += [f"  {one}" for one in self.apart()] if side == "b" else []
                for c in range(self.width):
                    held = f"{side}{n}_{c}"
                    lines += [
                        "  {",
                        f"    let line = {first} + {line} + {self.stretch * c}u;",
                        f"    {held} = {self.ty}();",
                        f"    if (term < end && line < {extent}) {{",
                        f"      {held} = {self.left() if side == 'a' else self.right(c)};",
                        "    }",
                        "  }",
                    ]
                lines.append("}")
        return lines

    def _kept(self) -> list[str]:
        """They lie in shared memory."""
        lines = []
        for side, shared in (("a", "left"), ("b", "right")):
            for n in range(self.each // self.width):
                step, line = self._spot(side, n)
                held = ", ".join(f"{side}{n}_{c}" for c in range(self.width))
                value = f"{self.vector}({held})" if self.width > 1 else held
                lines.append(f"{shared}[({step}) * {self.pitch}u + {line}] = {value};")
        return lines
