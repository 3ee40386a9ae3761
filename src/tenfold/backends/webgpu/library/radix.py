"""A stable sort of numbers by their bits, each with a number that goes along with it.

Four bits at a time, the lowest ones first: a workgroup has a tile of items, of which it counts the
digits; counts are added up, for each digit along the tiles; then each item goes behind those with
lesser digits, and those with its own that come before it. Three turns do this, of one entry point.
What is a single tile is sorted by one workgroup in one go.
"""

from __future__ import annotations

BITS = 4
DIGITS = 1 << BITS
THREADS = 256
_EACH = 8  # items of an invocation, side by side
TILE = THREADS * _EACH
TURNS = 3
# Counts of digits by invocation. What one adds up lies apart from what its neighbours do.
_PART = THREADS // DIGITS
_PITCH = THREADS + DIGITS
SHARED = (
    ("counted", "u32", DIGITS * _PITCH), ("parts", "u32", THREADS), ("bases", "u32", DIGITS),
)  # fmt: skip


def radix_turn(keys: str, values: str, counts: str) -> list[str]:
    """One turn of many tiles. Names that it is given: `lid`, `number` of the group, `n` items,
    `tiles`, and the `turn`; both arrays have twice as much, of which turns use one half after the
    other. `counts` has room for one more than the tiles of each digit."""
    return [
        f"let shift = {BITS}u * (u32(turn) / {TURNS}u);",
        f"let here = ((u32(turn) / {TURNS}u) & 1u) * n;",
        "let there = n - here;",
        f"let first = number * {TILE}u + lid * {_EACH}u;",
        f"let phase = u32(turn) % {TURNS}u;",
        "let row = number * (tiles + 1u);",
        "if (phase == 0u && number < tiles) {",
        *_indented(_digits(keys)),
        *_indented(_parts()),
        f"  if (lid < {DIGITS}u) {{",
        f"    let last = parts[lid * {_PART}u + {_PART - 1}u];",
        f"    {counts}[lid * (tiles + 1u) + number] = last;",
        "  }",
        f"}} else if (phase == 1u && number < {DIGITS}u) {{",
        *_indented(_along(counts)),
        "} else if (phase == 2u && number < tiles) {",
        *_indented(_digits(keys)),
        f"  if (lid < {DIGITS}u) {{",
        f"    var base = {counts}[lid * (tiles + 1u) + number];",
        f"    for (var d = 0u; d < lid; d++) {{ base += {counts}[d * (tiles + 1u) + tiles]; }}",
        "    bases[lid] = base;",
        "  }",
        *_indented(_parts()),
        *_indented(_placed(keys, values)),
        "}",
    ]


def radix_tile(keys: str, values: str, passes: str) -> list[str]:
    """All turns of a single tile, so many passes."""
    inner = [
        f"let shift = {BITS}u * u32(pass_);",
        "let here = u32(pass_ & 1) * n;",
        "let there = n - here;",
        *_digits(keys),
        *_parts(),
        f"if (lid < {DIGITS}u) {{",
        "  var base = 0u;",
        f"  for (var d = 0u; d < lid; d++) {{ base += parts[d * {_PART}u + {_PART - 1}u]; }}",
        "  bases[lid] = base;",
        "}",
        *_placed(keys, values),
        "storageBarrier();",
        "workgroupBarrier();",
    ]
    return [
        f"let first = lid * {_EACH}u;",
        f"for (var pass_ = 0; pass_ < {passes}; pass_++) {{",
        *_indented(inner),
        "}",
    ]


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _digit(j: int) -> str:
    """That of an item."""
    return f"((key{j} >> shift) & {DIGITS - 1}u)"


def _spot(digit: str) -> str:
    """Where an invocation counts a digit."""
    return f"{digit} * {_PITCH}u + lid + lid / {_PART}u"


def _digits(keys: str) -> list[str]:
    """An invocation's items, of each the digit and how many before it have the same."""
    lines = [f"for (var d = 0u; d < {DIGITS}u; d++) {{ counted[{_spot('d')}] = 0u; }}"]
    for j in range(_EACH):
        lines += [
            f"var key{j} = 0u;",
            f"var rank{j} = 0u;",
            f"if (first + {j}u < n) {{",
            f"  key{j} = {keys}[here + first + {j}u];",
            f"  let spot = {_spot(_digit(j))};",
            f"  rank{j} = counted[spot];",
            f"  counted[spot] = rank{j} + 1u;",
            "}",
        ]
    return lines


def _parts() -> list[str]:
    """Each invocation adds up a part of a digit's counts, and what comes before it: `parts` has
    those up to its end."""
    begin = f"lid / {_PART}u * {_PITCH}u + lid % {_PART}u * {_PART + 1}u"
    return [
        "workgroupBarrier();",
        f"let begin = {begin};",
        "var own = 0u;",
        f"for (var e = 0u; e < {_PART}u; e++) {{ own += counted[begin + e]; }}",
        "parts[lid] = own;",
        *_scan(_PART),
    ]


def _scan(team: int) -> list[str]:
    """`parts` of an invocation become those of all of its team up to it."""
    return [
        f"for (var by = 1u; by < {team}u; by *= 2u) {{",
        "  workgroupBarrier();",
        f"  let near = select(0u, parts[max(lid, by) - by], lid % {team}u >= by);",
        "  workgroupBarrier();",
        "  parts[lid] += near;",
        "}",
        "workgroupBarrier();",
    ]


def _along(counts: str) -> list[str]:
    """A digit's counts become how many come before each tile's, and behind them how many there
    are."""
    return [
        f"let chunk = (tiles + {THREADS - 1}u) / {THREADS}u;",
        "let low = min(lid * chunk, tiles);",
        "let high = min(low + chunk, tiles);",
        "var own = 0u;",
        f"for (var i = low; i < high; i++) {{ own += {counts}[row + i]; }}",
        "parts[lid] = own;",
        *_scan(THREADS),
        "var before = parts[lid] - own;",
        "for (var i = low; i < high; i++) {",
        f"  let one = {counts}[row + i];",
        f"  {counts}[row + i] = before;",
        "  before += one;",
        "}",
        f"if (lid == {THREADS - 1}u) {{ {counts}[row + tiles] = before; }}",
    ]


def _placed(keys: str, values: str) -> list[str]:
    """Items go where they belong."""
    lines = [
        "var before = parts[lid] - own;",
        f"for (var e = 0u; e < {_PART}u; e++) {{",
        "  let one = counted[begin + e];",
        "  counted[begin + e] = before;",
        "  before += one;",
        "}",
        "workgroupBarrier();",
    ]
    for j in range(_EACH):
        digit = _digit(j)
        lines += [
            f"if (first + {j}u < n) {{",
            f"  let to = there + bases[{digit}] + counted[{_spot(digit)}] + rank{j};",
            f"  {keys}[to] = key{j};",
            f"  {values}[to] = {values}[here + first + {j}u];",
            "}",
        ]
    return lines
