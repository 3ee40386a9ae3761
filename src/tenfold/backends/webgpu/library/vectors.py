"""Products of matrices and vectors: each element of a matrix is read once.

- `rows`: the terms of a result lie side by side. A team of invocations has a result, all of a
  workgroup or, where there are `MANY`, a part of it; each adds up every so many terms one after the
  other, and what they have is added as a balanced tree.
- `columns`: results lie side by side. A workgroup has `ACROSS` of them, and several invocations for
  each, which add up every so many terms; what they have is added as a balanced tree.

Terms are cut into parts where there are few results, and so that no invocation adds up more than
`SERIAL`, unless there are very many; parts are added in their order. It hangs on the shape alone.
"""

from __future__ import annotations

from tenfold.backends.matrices import MatrixProduct
from tenfold.backends.webgpu.library.elements import Array, bits_of, computed
from tenfold.backends.webgpu.library.module import RoutineText
from tenfold.backends.webgpu.library.routine import Launch, Routine
from tenfold.backends.webgpu.library.tiles import add_parts, parts_launch
from tenfold.backends.webgpu.shader import Shader
from tenfold.frozen import frozen

MANY = 2048  # results from which on a few lanes have one
SERIAL = 512  # terms that an invocation adds up one after the other
PARTS = 1 << 14  # at most
ACROSS = 32
_ENOUGH = 256  # workgroups
_LEAST = 16  # terms of an invocation
_WORKGROUP, _FEW = 256, 32
_AHEAD = 4  # terms that are read at a time
_WORDS = ("results", "k", "every", "span", "parts")


@frozen
class VectorForm:
    """What the text of a product with a vector hangs on: dtypes, as the operands stand; which of
    them is the matrix; whether its terms lie apart; how many invocations have a result; whether
    terms are cut."""

    dtypes: tuple[str, str, str]
    matrix: int
    apart: bool
    team: int
    split: bool


def vector_routine(p: MatrixProduct) -> Routine:
    """Products of which one operand is a vector."""
    matrix, results, lies = (0, p.m, p.left) if p.n == 1 else (1, p.n, not p.right)
    apart = lies and results > 1
    every = p.batch * results
    team = _WORKGROUP // ACROSS if apart else _FEW if every >= MANY else _WORKGROUP
    rows = p.batch * -(-results // ACROSS) if apart else -(-every * team // _WORKGROUP)
    wanted = min(-(-_ENOUGH // rows), -(-p.k // (team * _LEAST)))
    parts = min(max(wanted, -(-p.k // (team * SERIAL))), PARTS)
    span = -(-p.k // parts)
    parts = -(-p.k // span)
    form = VectorForm(p.dtypes, matrix, apart, team, parts > 1)
    launches = [Launch("main", rows * parts, (results, p.k, every, span, parts))]
    scratch: tuple[int, ...] = ()
    if parts > 1:
        scratch = (parts * every * bits_of(computed(p.dtype)) // 8,)
        launches.append(parts_launch(every, parts, len(_WORDS)))
    largest = max(every * p.k * bits_of(p.dtypes[matrix]) // 8, every * bits_of(p.dtype) // 8)
    return Routine(_shader(form), tuple(launches), largest, scratch)


def _shader(form: VectorForm) -> Shader:
    a, b, made = form.dtypes
    ty = computed(made)
    arrays = [Array("a", a), Array("b", b), Array("c", made, written=True)]
    text = RoutineText(arrays, _WORDS, _WORKGROUP, [("s", ty)] if form.split else ())
    text.share("sums", ty, _WORKGROUP)
    text.entry("main", [*(_columns(form) if form.apart else _rows(form)), *_total(form, ty)])
    if form.split:
        add_parts(text, ty)
    way = "columns" if form.apart else "rows"
    words = f"{way} by {form.team} invocations each"
    return text.finish(words + ", parts of terms added in order" * form.split)


def _rows(form: VectorForm) -> list[str]:
    """Where the terms of a result begin, of the matrix and of the vector."""
    per = _WORKGROUP // form.team
    return [
        "let part = number % parts;",
        f"let result = (number / parts) * {per}u + lid / {form.team}u;",
        f"let lane = lid % {form.team}u;",
        "let live = result < every;",
        "let first = result * k;",
        "let other = (result / results) * k;",
        "let apart = 1u;",
    ]


def _columns(form: VectorForm) -> list[str]:
    return [
        "let part = number % parts;",
        f"let across = (results + {ACROSS - 1}u) / {ACROSS}u;",
        "let which = number / parts / across;",
        f"let column = (number / parts % across) * {ACROSS}u + lid % {ACROSS}u;",
        f"let lane = lid / {ACROSS}u;",
        "let result = which * results + column;",
        "let live = column < results && result < every;",
        "let first = which * results * k + column;",
        "let other = which * k;",
        "let apart = results;",
    ]


def _total(form: VectorForm, ty: str) -> list[str]:
    """The sum of a team, from where its terms begin."""
    team = form.team

    def element(which: int, at: str) -> str:
        found = f"get_{'ab'[which]}({at})"
        return found if computed(form.dtypes[which]) == ty else f"bitcast<{ty}>({found})"

    def pair(term: str) -> tuple[str, str]:
        inner = element(form.matrix, f"first + ({term}) * apart")
        return inner, element(1 - form.matrix, f"other + {term}")

    def added(x: str, y: str) -> str:
        return f"sum = fma({x}, {y}, sum);" if ty in ("f32", "f64") else f"sum += {x} * {y};"

    lines = [
        "let end = select(0u, min((part + 1u) * span, k), live);",
        "var term = part * span + lane;",
        f"var sum = {ty}();",
        f"for (; term + {team * (_AHEAD - 1)}u < end; term += {team * _AHEAD}u) {{",
    ]
    for n in range(_AHEAD):
        x, y = pair(f"term + {team * n}u")
        lines += [f"  let x{n} = {x};", f"  let y{n} = {y};"]
    lines += [f"  {added(f'x{n}', f'y{n}')}" for n in range(_AHEAD)]
    lines += ["}", f"for (; term < end; term += {team}u) {{"]
    lines += [f"  {added(*pair('term'))}", "}", "sums[lid] = sum;"]
    apart = ACROSS if form.apart else 1  # invocations from one of a team to the next
    half = team // 2
    while half:
        lines += [
            "workgroupBarrier();",
            f"if (lane < {half}u) {{ sums[lid] += sums[lid + {half * apart}u]; }}",
        ]
        half //= 2
    lines.append("workgroupBarrier();")
    kept = "s[part * every + result] = sums[lid];" if form.split else "set_c(result, sums[lid]);"
    return [*lines, f"if (lane == 0u && live) {{ {kept} }}"]
