"""Products of matrices by tiles.

A workgroup of 16 by 16 invocations has a square tile of the result, each invocation so many of its
rows and columns. It goes along the terms 16 at a time: these are brought into shared memory, turned
so that rows, and columns, lie side by side, while the ones before are multiplied.

An invocation adds up its terms one after the other. How far is a function of shapes and dtypes
alone: of the tiles that rows and columns fill it is the largest of which there are `ENOUGH`; if
there is none, terms are cut into parts of `SPAN` or more, as many as make it enough, and a second
entry point adds up the parts in their order. `FARTHEST` terms always end a part: drivers end longer
loops.
"""

from __future__ import annotations

from tenfold.backends.matrices import MatrixProduct
from tenfold.backends.webgpu.library.elements import Array, bits_of, computed
from tenfold.backends.webgpu.library.module import RoutineText
from tenfold.backends.webgpu.library.routine import Launch, Routine
from tenfold.backends.webgpu.shader import Shader
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.frozen import frozen

ENOUGH = 128  # tiles
SPAN = 512  # terms of a part, at least
FARTHEST = 1 << 14  # and at most
DEEP = 16  # terms at a time
EXTENTS = (128, 64, 32, 16)
_SIDE = 16  # invocations along a side of a tile
_WORKGROUP = _SIDE * _SIDE
_WORDS = ("m", "n", "k", "across", "tiles", "batch", "groups", "span")


@frozen
class TileForm:
    """What the text of a product by tiles hangs on."""

    dtypes: tuple[str, str, str]
    extent: int
    left: bool  # whether an operand lies transposed
    right: bool
    split: bool  # whether terms are cut into parts
    padded: bool  # whether lines of shared memory are longer than a tile, against conflicts


def cut_of(p: MatrixProduct) -> tuple[int, int]:
    """The extent of the tiles of a product, and the terms of a part.

    >>> def cut(batch, m, n, k, dtype="f32"):
    ...     return cut_of(MatrixProduct((dtype,) * 3, batch, m, n, k, False, False))
    >>> cut(1, 4096, 4096, 64), cut(1, 1024, 1024, 64), cut(1, 64, 64, 64), cut(500, 32, 32, 64)
    ((128, 64), (64, 64), (16, 64), (32, 64))
    >>> cut(1, 4096, 4096, 64, "f64"), cut(1, 64, 64, 100000), cut(1, 4096, 4096, 40000)
    ((64, 64), (64, 784), (128, 13344))
    """
    fit = [
        (extent, p.batch * -(-p.m // extent) * -(-p.n // extent))
        for extent in EXTENTS
        if extent <= (64 if bits_of(p.dtype) == 64 else 128)
        and (extent < 2 * min(p.m, p.n) or extent == EXTENTS[-1])
    ]
    most = max(1, p.k // SPAN)
    full = [extent for extent, count in fit if count >= ENOUGH and extent > EXTENTS[-1]]
    cut = [(extent, count) for extent, count in fit if count * most >= ENOUGH]
    if full:
        extent, parts = full[0], 1
    elif cut:
        extent, parts = cut[0][0], min(most, -(-ENOUGH // cut[0][1]))
    else:
        extent, parts = EXTENTS[-1], most
    parts = max(parts, -(-p.k // FARTHEST))
    return extent, -(-p.k // (parts * DEEP)) * DEEP


def tiles_routine(
    p: MatrixProduct, target: WebGPUTarget, cut: tuple[int, int] | None = None
) -> Routine:
    """A product by tiles of this extent, and terms cut so; else by those of `cut_of`."""
    extent, span = cut or cut_of(p)
    parts = -(-p.k // span)
    down, across = -(-p.m // extent), -(-p.n // extent)
    size = bits_of(computed(p.dtype)) // 8
    padded = 2 * DEEP * (extent + _width(extent)) * size <= target.workgroup_bytes
    form = TileForm(p.dtypes, extent, p.left, p.right, parts > 1, padded)
    groups = p.batch * parts * down * across
    words = (p.m, p.n, p.k, across, down * across, p.batch, groups, span)
    launches = [Launch("main", groups, words)]
    results = p.batch * p.m * p.n
    scratch: tuple[int, ...] = ()
    if parts > 1:
        scratch = (parts * results * size,)
        launches.append(parts_launch(results, parts, len(words)))
    sides = zip(p.dtypes, (p.m * p.k, p.k * p.n, p.m * p.n), strict=True)
    largest = max(p.batch * count * bits_of(dtype) // 8 for dtype, count in sides)
    return Routine(_shader(form), tuple(launches), largest, scratch)


def _width(extent: int) -> int:
    """Rows, or columns, of an invocation that lie side by side."""
    return min(4, extent // _SIDE)


def _shader(form: TileForm) -> Shader:
    a, b, made = form.dtypes
    ty = computed(made)
    arrays = [Array("a", a), Array("b", b), Array("c", made, written=True)]
    text = RoutineText(arrays, _WORDS, _WORKGROUP, [("s", ty)] if form.split else ())
    lines = _Tile(form, text).lines()
    text.entry("main", lines)
    if form.split:
        add_parts(text, ty)
    words = f"tiles of {form.extent}²" + (", parts of terms added in order" * form.split)
    return text.finish(words)


def parts_launch(results: int, parts: int, words: int) -> Launch:
    """What adds up parts: its words stand where those of the other entry point stand."""
    own = (results, parts, *[0] * (words - 2))
    return Launch("add_parts", -(-results // _WORKGROUP), own)


def add_parts(text: RoutineText, ty: str) -> None:
    """The entry point that adds up the sums of parts, in order."""
    results, parts = text.words[:2]
    text.entry(
        "add_parts",
        [
            f"let at = number * {_WORKGROUP}u + lid;",
            f"if (at >= {results}) {{ return; }}",
            "var sum = s[at];",
            f"for (var part = 1u; part < {parts}; part++) {{",
            f"  sum += s[part * {results} + at];",
            "}",
            "set_c(at, sum);",
        ],
    )


class _Tile:
    """What writes the entry point of a tile."""

    def __init__(self, form: TileForm, text: RoutineText) -> None:
        self.form, self.extent = form, form.extent
        self.each = form.extent // _SIDE  # rows, and columns, of an invocation
        self.width = _width(form.extent)
        self.ty = computed(form.dtypes[2])
        self.vector = f"vec{self.width}<{self.ty}>" if self.width > 1 else self.ty
        # Vectors are written as a whole: who writes one element of one may write all of it.
        self.pitch = form.extent // self.width + form.padded
        for name in ("left", "right"):
            text.share(name, self.vector, DEEP * self.pitch)

    def lines(self) -> list[str]:
        groups = range(self.each // self.width)
        rows = [(g, c) for g in groups for c in range(self.width)]
        lines = [
            "let me = min(number, groups - 1u);",
            "let tile = me % tiles;",
            "let many = me / tiles;",
            "let which = many % batch;",
            f"let top = (tile / across) * {self.extent}u;",
            f"let first = (tile % across) * {self.extent}u;",
            "let begin = (many / batch) * span;",
            "let end = min(begin + span, k);",
            f"let tx = lid % {_SIDE}u;",
            f"let ty = lid / {_SIDE}u;",
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
        lines += [f"  {line}" for line in inner] + ["}"]
        base = "many" if self.form.split else "which"
        for g, c in rows:
            lines.append("{")
            lines.append(f"  let row = top + {_SIDE * self.width * g + c}u + ty * {self.width}u;")
            for h in groups:
                for d in range(self.width):
                    lines += self._stored(base, f"sum{g}_{c}_{h}", h, d)
            lines.append("}")
        return lines

    def _stored(self, base: str, held: str, h: int, d: int) -> list[str]:
        value = f"{held}[{d}]" if self.width > 1 else held
        column = f"first + {_SIDE * self.width * h + d}u + tx * {self.width}u"
        place = f"({base} * m + row) * n + {column}"
        kept = f"s[{place}] = {value};" if self.form.split else f"set_c({place}, {value});"
        return [f"  if (row < m && {column} < n) {{ {kept} }}"]

    def _added(self, held: str, x: str, y: str) -> str:
        if self.ty in ("f32", "f64"):
            return f"{held} = fma({x}, {y}, {held});"
        return f"{held} += {x} * {y};"

    def _spot(self, side: str, n: int) -> tuple[str, str]:
        """The term, counted in the tile, and the lines, as many as are side by side, of what an
        invocation brings: neighbours bring what lies side by side in memory."""
        number = f"(lid + {_WORKGROUP * n}u)"
        if self._beside(side):
            return f"{number} % {DEEP}u", f"{number} / {DEEP}u"
        across = self.extent // self.width
        return f"{number} / {across}u", f"{number} % {across}u"

    def _beside(self, side: str) -> bool:
        """Whether the terms of an operand's line lie side by side."""
        return self.form.right if side == "b" else not self.form.left

    def _brought(self) -> list[str]:
        """Elements of the next terms, 0 beyond the end of them and of lines."""
        lines = []
        for side, first, extent in (("a", "top", "m"), ("b", "first", "n")):
            place = "line * k + term" if self._beside(side) else f"term * {extent} + line"
            for n in range(self.each // self.width):
                step, block = self._spot(side, n)
                lines += ["{", f"  let term = at + {step};"]
                for c in range(self.width):
                    held = f"{side}{n}_{c}"
                    lines += [
                        "  {",
                        f"    let line = {first} + {block} * {self.width}u + {c}u;",
                        f"    {held} = {self.ty}();",
                        f"    if (term < end && line < {extent}) {{",
                        f"      {held} = {self._read(side, f'which * {extent} * k + {place}')};",
                        "    }",
                        "  }",
                    ]
                lines.append("}")
        return lines

    def _read(self, side: str, place: str) -> str:
        dtype = self.form.dtypes["ab".index(side)]
        found = f"get_{side}({place})"
        return found if computed(dtype) == self.ty else f"bitcast<{self.ty}>({found})"

    def _kept(self) -> list[str]:
        """They lie in shared memory."""
        lines = []
        for side, shared in (("a", "left"), ("b", "right")):
            for n in range(self.each // self.width):
                step, block = self._spot(side, n)
                held = ", ".join(f"{side}{n}_{c}" for c in range(self.width))
                value = f"{self.vector}({held})" if self.width > 1 else held
                lines.append(f"{shared}[({step}) * {self.pitch}u + {block}] = {value};")
        return lines
