"""Sorts as WGSL: what sorts tiles of lines, and what merges sorted runs.

An item is an element's bits, and its position where that is asked for. Items are compared by keys:
unsigned numbers that sort as the elements do, zeros of either sign equal, NaNs equal and last. Keys
of 64 bits are two words, the lower one first, so no adapter needs such numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.webgpu.library.elements import Array, bits_of
from tenfold.backends.webgpu.library.module import RoutineText
from tenfold.backends.webgpu.shader import Shader
from tenfold.frozen import frozen

TILE = 1024  # items of a workgroup
WORKGROUP = 256
WORDS = ("n", "lines", "tiles", "keep", "following", "run")
# Where items are read and written: the arrays of the routine, or one of two places in scratch.
OUTSIDE, FIRST, SECOND = "x", "0", "1"
_EACH = TILE // WORKGROUP
_INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF00000}


@frozen
class SortForm:
    """What the text of a sort hangs on: the dtype, whether the greatest come first, and whether
    elements, and positions, are asked for."""

    dtype: str
    falling: bool
    values: bool
    positions: bool

    @property
    def type(self) -> str:
        """Of an element's bits, and of its key."""
        return "vec2<u32>" if bits_of(self.dtype) == 64 else "u32"


@frozen
class Step:
    """An entry point: it sorts lines or tiles of no more than `size` items, or merges where that is
    0, from one place to another."""

    size: int
    source: str
    target: str

    @property
    def name(self) -> str:
        head = f"tiles{self.size}" if self.size else "merge"
        return f"{head}_{self.source}_{self.target}"


def sort_shader(form: SortForm, steps: Sequence[Step]) -> Shader:
    """The shader of these entry points."""
    arrays = [Array("x", form.dtype, moved=True)]
    if form.values:
        arrays.append(Array("y", form.dtype, moved=True, written=True))
    if form.positions:
        arrays.append(Array("z", "i64", moved=True, written=True))
    places = sorted({p for s in steps for p in (s.source, s.target)} - {OUTSIDE})
    scratch = [(f"raw{p}", form.type) for p in places]
    scratch += [(f"spot{p}", "u32") for p in places if form.positions]
    text = RoutineText(arrays, WORDS, WORKGROUP, scratch)
    text.share("keys", form.type, TILE)
    text.share("tags", "u32", TILE)
    text.share("ends", "u32", 2)
    text.function(_key(form))
    text.function(_less(form))
    for step in dict.fromkeys(steps):
        text.entry(step.name, _tiles(form, step) if step.size else _merge(form, step))
    return text.finish("a sort: tiles are sorted, then merged")


def _key(form: SortForm) -> str:
    """A number that sorts as an element does."""
    dtype, turn = form.dtype, "~" if form.falling else ""
    bits, wide = bits_of(dtype), form.type != "u32"
    head = f"fn key(raw: {form.type}) -> {form.type} {{"
    top, sign = ("raw.y", 1 << 31) if wide else ("raw", 1 << (bits - 1))
    if dtype not in _INFINITY:
        made = f"{top} ^ {sign}u" if dtype[0] == "i" else top
        made = f"vec2<u32>(raw.x, {made})" if wide else made
        return f"{head} return {turn}({made}); }}"
    mask, infinity = 2 * sign - 1, _INFINITY[dtype]
    lines = [head, f"let size = {top} & {sign - 1}u;"]
    if wide:
        lines += [
            f"let plain = select(vec2<u32>(raw.x, raw.y ^ {sign}u), ~raw, raw.y >= {sign}u);",
            f"let nought = vec2<u32>(0u, {sign}u);",
            "let zero = (size | raw.x) == 0u;",
            f"let nan = size > {infinity}u || (size == {infinity}u && raw.x != 0u);",
        ]
    else:
        lines += [
            f"let plain = select(raw ^ {sign}u, ~raw & {mask}u, (raw & {sign}u) != 0u);",
            f"let nought = {sign}u;",
            "let zero = size == 0u;",
            f"let nan = size > {infinity}u;",
        ]
    last = "vec2<u32>(4294967295u)" if wide else f"{mask}u"
    lines.append(f"return {turn}select(select(plain, nought, zero), {last}, nan);")
    return "\n  ".join(lines) + "\n}"


def _less(form: SortForm) -> str:
    head = f"fn less(a: {form.type}, b: {form.type}) -> bool {{"
    if form.type == "u32":
        return f"{head} return a < b; }}"
    return f"{head} return a.y < b.y || (a.y == b.y && a.x < b.x); }}"


def _raw(step: Step, at: str) -> str:
    return f"get_x({at})" if step.source == OUTSIDE else f"raw{step.source}[{at}]"


def _written(form: SortForm, step: Step, to: str, at: str, place: str) -> list[str]:
    """An item from one place to another; `place` is where it lies in its line."""
    spot = place if step.source == OUTSIDE else f"spot{step.source}[{at}]"
    if step.target != OUTSIDE:
        lines = [f"raw{step.target}[{to}] = {_raw(step, at)};"]
        return [*lines, *([f"spot{step.target}[{to}] = {spot};"] if form.positions else [])]
    lines = [f"set_y({to}, {_raw(step, at)});"] if form.values else []
    return [*lines, *([f"set_z({to}, vec2<u32>({spot}, 0u));"] if form.positions else [])]


def _tiles(form: SortForm, step: Step) -> list[str]:
    """Lines of no more than so many items, several in a workgroup, or tiles of one: as a network
    sorts them by keys, then by their order. Behind the last item are some that come last."""
    size = step.size
    last = "vec2<u32>(4294967295u)" if form.type != "u32" else "4294967295u"
    where = [
        f"  let i = turn * {WORKGROUP}u + lid;",
        f"  let line = (number / tiles) * {TILE // size}u + i / {size}u;",
        f"  let place = i % {size}u;",
        "  let first = line * n + start;",
    ]
    write = _written(form, step, "to", "first + tag", "start + tag")
    return [
        f"let start = (number % tiles) * {size}u;",
        f"for (var turn = 0u; turn < {_EACH}u; turn++) {{",
        *where,
        f"  keys[i] = {last};",
        "  tags[i] = place | 0x80000000u;",
        "  if (line < lines && start + place < n) {",
        f"    keys[i] = key({_raw(step, 'first + place')});",
        "    tags[i] = place;",
        "  }",
        "}",
        f"for (var block = 2u; block <= {size}u; block *= 2u) {{",
        "  for (var far = block / 2u; far > 0u; far /= 2u) {",
        "    workgroupBarrier();",
        f"    for (var turn = 0u; turn < {_EACH // 2}u; turn++) {{",
        f"      let pair = turn * {WORKGROUP}u + lid;",
        "      let i = (pair / far) * 2u * far + pair % far;",
        "      let j = i + far;",
        "      let one = keys[i];",
        "      let other = keys[j];",
        "      let before = less(other, one) || (!less(one, other) && tags[j] < tags[i]);",
        f"      if (before == ((i % {size}u & block) == 0u)) {{",
        "        keys[i] = other;",
        "        keys[j] = one;",
        "        let tag = tags[i];",
        "        tags[i] = tags[j];",
        "        tags[j] = tag;",
        "      }",
        "    }",
        "  }",
        "}",
        "workgroupBarrier();",
        f"for (var turn = 0u; turn < {_EACH}u; turn++) {{",
        *where,
        "  let tag = tags[i];",
        "  if (line < lines && tag < 0x80000000u && place < keep) {",
        "    let to = line * following + (number % tiles) * keep + place;",
        *(f"    {line}" for line in write),
        "  }",
        "}",
    ]


def _merge(form: SortForm, step: Step) -> list[str]:
    """A tile of what two neighbouring runs come to: where it begins and ends in them is searched
    for; each of its items goes as far as items of the other run go before it, those of the first
    run before their equals of the second."""
    a, b = _raw(step, "first + mid"), _raw(step, "second + far - 1u - mid")
    write = _written(form, step, "to", "at", "0u")
    return [
        "let line = number / tiles;",
        f"let begin = (number % tiles) * {TILE}u;",
        "let pair = begin / (2u * run) * 2u * run;",
        "let count = min(run, n - min(pair, n));",
        "let others = min(run, n - min(pair + run, n));",
        "let first = line * n + pair;",
        "let second = first + count;",
        "let live = line < lines && begin < n;",
        "let from_ = begin - pair;",
        f"let upto = select(from_, min(from_ + {TILE}u, count + others), live);",
        "if (live && lid < 2u) {",
        "  let far = select(from_, upto, lid == 1u);",
        "  var low = far - min(far, others);",
        "  var high = min(far, count);",
        "  while (low < high) {",
        "    let mid = (low + high) / 2u;",
        f"    if (less(key({b}), key({a}))) {{ high = mid; }} else {{ low = mid + 1u; }}",
        "  }",
        "  ends[lid] = low;",
        "}",
        "workgroupBarrier();",
        "let own = ends[0];",
        "let mine = ends[1] - own;",
        "let every = upto - from_;",
        f"for (var i = lid; i < every; i += {WORKGROUP}u) {{",
        "  let at = select(second + from_ - own + i - mine, first + own + i, i < mine);",
        f"  keys[i] = key({_raw(step, 'at')});",
        "}",
        "workgroupBarrier();",
        f"for (var i = lid; i < every; i += {WORKGROUP}u) {{",
        "  let ours = keys[i];",
        "  var low = select(0u, mine, i < mine);",
        "  let least = low;",
        "  var high = select(mine, every, i < mine);",
        "  while (low < high) {",
        "    let mid = (low + high) / 2u;",
        "    let goes = select(!less(ours, keys[mid]), less(keys[mid], ours), i < mine);",
        "    if (goes) { low = mid + 1u; } else { high = mid; }",
        "  }",
        "  tags[select(i - mine, i, i < mine) + low - least] = i;",
        "}",
        "workgroupBarrier();",
        f"for (var i = lid; i < every; i += {WORKGROUP}u) {{",
        "  let tag = tags[i];",
        "  let at = select(second + from_ - own + tag - mine, first + own + tag, tag < mine);",
        "  if (begin + i < keep) {",
        "    let to = line * following + begin + i;",
        *(f"    {line}" for line in write),
        "  }",
        "}",
    ]
