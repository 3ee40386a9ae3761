"""Single kernels beside NumPy, JAX, torch, numexpr and numba: one pinned thread, interleaved
rounds, minima.

    python benchmarks/kernels.py [--rounds N] [--compile] [--general] [case ...]

Ours write into a given output; NumPy does too where it can. Figures are µs and, for the peers,
how many times longer than ours they took in the same run. Results are checked against NumPy.

'floor' is what the machine takes in the same run to read the case's large inputs once and to write
its output once, with no work between (by streaming stores or plain ones, whichever is quicker). A
peer's time over the floor is the most that any program could gain on it. For NumPy and JAX the
ratio that was set as a mark stands behind: '=' where it is reached, '<' where it is not, '!' where
the floor puts it out of reach.

With --general: each kernel as it stands in a plan, for any sizes, beside one made for these alone.
Both work on the same memory, turn by turn in slices of the processor's time, with the arrays lying
in several ways to one another; the ratio is the median over the ways of the median of pairs, and
the ratios of the ways stand behind it.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from tenfold.backends.cpu.library.sort import sort_name
from tenfold.backends.cpu.library.sort.sort import scratch_bytes, sort_text
from tenfold.backends.cpu.link.compile import module_text, prepare
from tenfold.backends.cpu.link.loader import load
from tenfold.backends.cpu.schedule.schedule import tune
from tenfold.backends.cpu.target import host_target
from tenfold.backends.llvm.assemble import assemble
from tenfold.kernel import Builder, Index, Kernel
from tenfold.kernel.ir.kernel import SEQUENTIAL
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.kernel.passes.generalise import generalise
from tenfold.types import DTYPES

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # read by JAX and torch, which are imported later
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)
OPTIONS = {"compile": False}
PAGE = 4096
SLICE = 3e-4  # seconds between two looks at the clock


@dataclass
class Case:
    """A kernel, or the name of a sort, with its arrays (in the order of its buffers) and what the
    peers run."""

    name: str
    kernel: Kernel | str
    literals: dict[int, bytes]
    arrays: list[Array]
    peers: dict[str, Callable[[], Any]]
    check: Callable[[], bool]
    keep: list[Any] = field(default_factory=list)
    touched: int = 0  # bytes read of the inputs, where that is not all
    scratch: list[Array] = field(default_factory=list)


def normal(*shape: int, dtype: Any = np.float32) -> Array:
    return RNG.standard_normal(shape).astype(dtype)


def jax_peer(f: Callable[..., Any], *args: Array) -> dict[str, Callable[[], Any]]:
    try:
        import jax
    except ImportError:
        return {}
    jax.config.update("jax_enable_x64", True)
    given = [jax.numpy.asarray(a) for a in args]
    compiled = jax.jit(f)
    compiled(*given)
    return {"jax": lambda: jax.block_until_ready(compiled(*given))}


def torch_peer(f: Callable[..., Any], *args: Array) -> dict[str, Callable[[], Any]]:
    try:
        import torch
    except ImportError:
        return {}
    torch.set_num_threads(1)

    def tensor(a: Array) -> Any:
        if a.dtype == DTYPES["bf16"]:
            return torch.from_numpy(a.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(a)

    given = [tensor(a) for a in args]
    found: dict[str, Callable[[], Any]] = {"torch": lambda: f(torch, *given)}
    if OPTIONS["compile"]:
        compiled = torch.compile(lambda *tensors: f(torch, *tensors))
        compiled(*given)
        found["torch.compile"] = lambda: compiled(*given)
    return found


def numexpr_peer(text: str, **given: Array) -> dict[str, Callable[[], Any]]:
    try:
        import numexpr
    except ImportError:
        return {}
    numexpr.set_num_threads(1)
    return {"numexpr": lambda: numexpr.evaluate(text, given)}


def numba_peer(f: Callable[..., Any], *args: Array) -> dict[str, Callable[[], Any]]:
    """Plain loops, compiled with leave to reorder sums."""
    try:
        import numba
    except ImportError:
        return {}
    compiled = numba.njit(f, fastmath=True)
    compiled(*args)
    return {"numba": lambda: compiled(*args)}


def close(got: Array, want: Array, tolerance: float = 1e-5) -> Callable[[], bool]:
    expected = np.array(want, np.float64)

    def check() -> bool:
        found = got.astype(np.float64)
        return bool(np.allclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True))

    return check


# The cases.


def multiply_add(rows: int, columns: int, dtype: str = "f32") -> Case:
    b = Builder()
    n = rows * columns
    x, y, z, out = (*(b.buffer(dtype, s) for s in (n, n, columns)), b.buffer(dtype, n, "write"))
    i, j = b.axis(rows), b.axis(columns)
    at = i * columns + j
    product = b.op("mul", dtype, b.load(x, at), b.load(y, at))
    b.store(out, at, b.op("add", dtype, product, b.load(z, j)))
    kind = DTYPES[dtype]
    xs, ys = (normal(rows, columns) * 3, normal(rows, columns) * 3)
    zs = normal(columns) * 3
    if dtype == "bool":
        xs, ys, zs = xs > 0, ys > 0, zs > 0
    xs, ys, zs = (a.astype(kind) for a in (xs, ys, zs))
    got, spare = np.zeros((rows, columns), kind), np.zeros((rows, columns), kind)

    def with_numpy() -> Array:
        np.multiply(xs, ys, out=spare)
        return np.add(spare, zs, out=spare)

    def plain(x: Any, y: Any, z: Any) -> Any:
        return (x & y) | z if dtype == "bool" else x * y + z

    peers = {"numpy": with_numpy} | jax_peer(plain, xs, ys, zs)
    if dtype == "f32":
        peers |= torch_peer(lambda t, x, y, z: t.addcmul(z, x, y), xs, ys, zs)
    else:
        peers |= torch_peer(lambda t, x, y, z: plain(x, y, z), xs, ys, zs)
    if dtype not in ("bool", "bf16"):
        peers |= numexpr_peer("x * y + z", x=xs, y=ys, z=zs)
        peers |= numba_peer(_multiply_add_loops, xs, ys, zs, spare)
    name = f"x*y+b {rows}x{columns}" + ("" if dtype == "f32" else f" {dtype}")
    tolerance = 1e-2 if dtype == "bf16" else 1e-5
    return Case(name, b.finish(), {}, [xs, ys, zs, got], peers, close(got, with_numpy(), tolerance))


def _multiply_add_loops(x: Any, y: Any, z: Any, out: Any) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * y[i, j] + z[j]


def transpose(n: int) -> Case:
    b = Builder()
    x, z, out = b.buffer("f32", n * n), b.buffer("f32", n * n), b.buffer("f32", n * n, "write")
    i, j = b.axis(n), b.axis(n)
    two = b.literal("f32", 2.0)
    doubled = b.op("mul", "f32", b.load(x, j * n + i), two)
    b.store(out, i * n + j, b.op("add", "f32", doubled, b.load(z, i * n + j)))
    xs, zs, got, spare = normal(n, n), normal(n, n), np.zeros((n, n), "f4"), np.zeros((n, n), "f4")

    def with_numpy() -> Array:
        np.multiply(xs.T, np.float32(2), out=spare)
        return np.add(spare, zs, out=spare)

    peers = {"numpy": with_numpy} | jax_peer(lambda x, z: x.T * 2 + z, xs, zs)
    peers |= torch_peer(lambda t, x, z: t.add(z, x.T, alpha=2), xs, zs)
    arrays = [xs, zs, got]
    return Case(f"x.T*2+z {n}", b.finish(), b.literals, arrays, peers, close(got, with_numpy()))


def softmax(rows: int, columns: int, axis: int) -> Case:
    b = Builder()
    n = rows * columns
    x, out = b.buffer("f32", n), b.buffer("f32", n, "write")
    i, j = b.axis(rows), b.axis(columns)
    length = columns if axis else rows
    first, k = b.reduced(length, 1)
    second, m = b.reduced(length, 2)

    def read(at: Index) -> int:
        return b.load(x, i * columns + at if axis else at * columns + j)

    top = b.reduce("max", (first,), read(k))
    total = b.reduce("sum", (second,), b.op("exp", "f32", b.op("sub", "f32", read(m), top)))
    e = b.op("exp", "f32", b.op("sub", "f32", read(j if axis else i), top))
    b.store(out, i * columns + j, b.op("div", "f32", e, total))
    xs, got, spare = (
        normal(rows, columns),
        np.zeros((rows, columns), "f4"),
        np.zeros((rows, columns), "f4"),
    )

    def with_numpy() -> Array:
        np.subtract(xs, xs.max(axis, keepdims=True), out=spare)
        np.exp(spare, out=spare)
        return np.divide(spare, spare.sum(axis, keepdims=True), out=spare)

    def with_jax(x: Any) -> Any:
        import jax

        return jax.nn.softmax(x, axis)

    peers = {"numpy": with_numpy} | jax_peer(with_jax, xs)
    peers |= torch_peer(lambda t, x: t.softmax(x, axis), xs)
    name = f"softmax {'last' if axis else 'first'} {rows}x{columns}"
    return Case(name, b.finish(), {}, [xs, got], peers, close(got, with_numpy()))


def layernorm(rows: int, columns: int) -> Case:
    b = Builder()
    n = rows * columns
    x, g, h = b.buffer("f32", n), b.buffer("f32", columns), b.buffer("f32", columns)
    out = b.buffer("f32", n, "write")
    i, j = b.axis(rows), b.axis(columns)
    first, k = b.reduced(columns, 1)
    second, m = b.reduced(columns, 2)
    share, small = b.literal("f32", 1 / columns), b.literal("f32", 1e-5)

    def op(name: str, *args: int) -> int:
        return b.op(name, "f32", *args)

    def row(at: Index) -> int:
        return b.load(x, i * columns + at)

    mean = op("mul", b.reduce("sum", (first,), row(k)), share)
    apart = op("sub", row(m), mean)
    variance = op("mul", b.reduce("sum", (second,), op("mul", apart, apart)), share)
    scale = op("div", b.const("f32", 1.0), op("sqrt", op("add", variance, small)))
    centred = op("mul", op("sub", row(j), mean), scale)
    b.store(out, i * columns + j, op("add", op("mul", centred, b.load(g, j)), b.load(h, j)))
    xs, gs, hs, got = (
        normal(rows, columns),
        normal(columns),
        normal(columns),
        np.zeros((rows, columns), "f4"),
    )

    def plain(x: Any, g: Any, h: Any, lib: Any = np) -> Any:
        mean = x.mean(1, keepdims=True)
        variance = ((x - mean) ** 2).mean(1, keepdims=True)
        return (x - mean) / lib.sqrt(variance + 1e-5) * g + h

    def with_jax(x: Any, g: Any, h: Any) -> Any:
        import jax.numpy as jnp

        return plain(x, g, h, jnp)

    def with_torch(t: Any, x: Any, g: Any, h: Any) -> Any:
        return t.nn.functional.layer_norm(x, (columns,), g, h)

    peers: dict[str, Callable[[], Any]] = {"numpy": lambda: plain(xs, gs, hs)}
    peers |= jax_peer(with_jax, xs, gs, hs) | torch_peer(with_torch, xs, gs, hs)
    check = close(got, plain(xs, gs, hs), 1e-4)
    name = f"layernorm {rows}x{columns}"
    return Case(name, b.finish(), b.literals, [xs, gs, hs, got], peers, check)


def embedding(words: int, width: int, batch: int, length: int) -> Case:
    b = Builder()
    table, places = b.buffer("f32", words * width), b.buffer("f32", length * width)
    ids, out = b.buffer("i32", batch * length), b.buffer("f32", batch * width, "write")
    i, d = b.axis(batch), b.axis(width)
    r, t = b.reduced(length, 1)
    row = b.as_index(b.load(ids, i * length + t), words)
    value = b.op("add", "f32", b.load(table, row * width + d), b.load(places, t * width + d))
    mean = b.op("mul", "f32", b.reduce("sum", (r,), value), b.literal("f32", 1 / length))
    b.store(out, i * width + d, mean)
    ts, ps = normal(words, width), normal(length, width)
    ns = RNG.integers(0, words, (batch, length)).astype(np.int32)
    got = np.zeros((batch, width), "f4")

    def plain(e: Any, p: Any, n: Any) -> Any:
        return (e[n] + p).mean(1)

    def with_torch(t: Any, e: Any, p: Any, n: Any) -> Any:
        return (t.nn.functional.embedding(n, e) + p).mean(1)

    peers: dict[str, Callable[[], Any]] = {"numpy": lambda: plain(ts, ps, ns)}
    peers |= jax_peer(plain, ts, ps, ns) | torch_peer(with_torch, ts, ps, ns)
    arrays, check = [ts, ps, ns, got], close(got, plain(ts, ps, ns))
    read = batch * length * width * 4
    return Case("gather+add+mean", b.finish(), b.literals, arrays, peers, check, touched=read)


def scatter(count: int, places: int, width: int) -> Case:
    """Rows added at computed places, in order; NumPy and torch add in place as ours does."""
    b = Builder()
    x, ids = b.buffer("f32", count * width), b.buffer("i64", count)
    out = b.buffer("f32", places * width, "both")
    i, j = b.axis(count, SEQUENTIAL), b.axis(width)
    index, zero, last = b.load(ids, i), b.const("i64", 0), b.const("i64", places - 1)
    index = b.op("min", "i64", b.op("max", "i64", index, zero), last)
    at = b.as_index(index, places) * width + j
    b.store(out, at, b.load(x, i * width + j), update="add")
    xs = normal(count, width) if width > 1 else normal(count)
    ns = RNG.integers(0, places, count)
    got, spare = (np.zeros((places, *xs.shape[1:]), "f4") for _ in range(2))

    def with_jax(x: Any, n: Any) -> Any:
        import jax.numpy as jnp

        return jnp.zeros(got.shape, jnp.float32).at[n].add(x, mode="clip")

    wanted = np.zeros_like(got)
    np.add.at(wanted, ns, xs)
    peers: dict[str, Callable[[], Any]] = {"numpy": lambda: np.add.at(spare, ns, xs)}
    peers |= jax_peer(with_jax, xs, ns)
    peers |= torch_peer(lambda t, s, x, n: s.index_add_(0, n, x), spare, xs, ns)
    name = f"scatter add {count}x{width}"
    return Case(name, b.finish(), {}, [xs, ns, got], peers, close(got, wanted))


def sort(rows: int, length: int, name: str = "sort", dtype: str = "f32") -> Case:
    """Stable, as ours is; `numpy any` may be unstable."""
    xs = normal(rows, length, dtype=DTYPES[dtype])
    got = np.zeros(xs.shape, DTYPES[dtype] if name == "sort" else np.int64)
    size = scratch_bytes(name, dtype, length)
    assert size is not None
    scratch = np.zeros(size // 8 + 8, np.int64)
    scratch = scratch[-(scratch.ctypes.data // 8) % 8 :]
    function = getattr(np, name)

    def with_jax(x: Any) -> Any:
        import jax.numpy as jnp

        return getattr(jnp, name)(x, axis=1, stable=True)

    peers: dict[str, Callable[[], Any]] = {
        "numpy": lambda: function(xs, 1, kind="stable"),
        "numpy any": lambda: function(xs, 1),
    }
    peers |= jax_peer(with_jax, xs)
    peers |= torch_peer(lambda t, x: getattr(t, name)(x, dim=1, stable=True), xs)
    wanted = function(xs, 1, kind="stable")
    title = f"{name} {dtype} {rows}x{length}"
    arrays = [xs, got, scratch]
    return Case(title, sort_name(name, dtype), {}, arrays, peers, close(got, wanted))


def concatenated(rows: int, left: int, right: int) -> Case:
    b = Builder()
    columns = left + right
    x, y = b.buffer("f32", rows * left), b.buffer("f32", rows * right)
    out = b.buffer("f32", rows * columns, "write")
    i, j = b.axis(rows), b.axis(columns)
    here, there = b.inside(j, 0, left), b.inside(j - left, 0, right)
    joined = b.select(here, b.load(x, i * left + j, here), b.load(y, i * right + j - left, there))
    square = b.op("mul", "f32", joined, joined)
    b.store(out, i * columns + j, b.op("add", "f32", square, b.const("f32", 1.0)))
    xs, ys, got = normal(rows, left), normal(rows, right), np.zeros((rows, columns), "f4")
    spare = np.zeros((rows, columns), "f4")

    def with_numpy() -> Array:
        np.concatenate([xs, ys], 1, out=spare)
        np.multiply(spare, spare, out=spare)
        return np.add(spare, np.float32(1), out=spare)

    def with_jax(x: Any, y: Any) -> Any:
        import jax.numpy as jnp

        return jnp.concatenate([x, y], 1) ** 2 + 1

    peers = {"numpy": with_numpy} | jax_peer(with_jax, xs, ys)
    peers |= torch_peer(lambda t, x, y: t.cat([x, y], 1).square_().add_(1), xs, ys)
    name = f"concat {rows}x({left}+{right})"
    return Case(name, b.finish(), {}, [xs, ys, got], peers, close(got, with_numpy()))


def stencil(rows: int, columns: int) -> Case:
    b = Builder()
    n = rows * columns
    x, out = b.buffer("f32", n), b.buffer("f32", n, "write")
    i, j = b.axis(rows), b.axis(columns)
    quarter, half, zero = b.literal("f32", 0.25), b.literal("f32", 0.5), b.const("f32", 0.0)
    total: int | None = None
    for shift, weight in ((-1, quarter), (0, half), (1, quarter)):
        ok = b.inside(j + shift, 0, columns)
        padded = b.select(ok, b.load(x, i * columns + j + shift, ok), zero)
        term = b.op("mul", "f32", padded, weight)
        total = term if total is None else b.op("add", "f32", total, term)
    assert total is not None
    b.store(out, i * columns + j, total)
    xs, got = normal(rows, columns), np.zeros((rows, columns), "f4")

    def plain(x: Any, lib: Any = np) -> Any:
        q = lib.pad(x, ((0, 0), (1, 1)))
        return (
            q[:, :-2] * lib.float32(0.25)
            + q[:, 1:-1] * lib.float32(0.5)
            + q[:, 2:] * lib.float32(0.25)
        )

    def with_jax(x: Any) -> Any:
        import jax.numpy as jnp

        return plain(x, jnp)

    def with_torch(t: Any, x: Any) -> Any:
        q = t.nn.functional.pad(x, (1, 1))
        return q[:, :-2] * 0.25 + q[:, 1:-1] * 0.5 + q[:, 2:] * 0.25

    peers: dict[str, Callable[[], Any]] = {"numpy": lambda: plain(xs)}
    peers |= jax_peer(with_jax, xs) | torch_peer(with_torch, xs)
    name = f"pad+stencil {rows}x{columns}"
    return Case(name, b.finish(), b.literals, [xs, got], peers, close(got, plain(xs)))


def argmax(rows: int, columns: int) -> Case:
    b = Builder()
    x = b.buffer("f32", rows * columns)
    best, where = b.buffer("f32", rows, "write"), b.buffer("i64", rows, "write")
    i = b.axis(rows)
    r, k = b.reduced(columns, 1)
    top = b.reduce("argmax", (r,), b.load(x, i * columns + k), b.index(k, "i32"))
    b.store(best, i, top)
    b.store(where, i, b.cast(b.state(top, 1), "i64"))
    xs = normal(rows, columns)
    xs[3, 5] = xs[3, 50] = np.nan
    xs[4] = -np.inf
    xs[5, 7] = xs[5, 60] = 99
    values, places = np.zeros(rows, "f4"), np.zeros(rows, "i8")

    def check() -> bool:
        same = np.array_equal(values, xs.max(1), equal_nan=True)
        return same and np.array_equal(places, xs.argmax(1))

    peers: dict[str, Callable[[], Any]] = {"numpy": lambda: (xs.argmax(1), xs.max(1))}
    peers |= jax_peer(lambda x: (x.argmax(1), x.max(1)), xs) | torch_peer(lambda t, x: x.max(1), xs)
    return Case(f"argmax+max {rows}x{columns}", b.finish(), {}, [xs, values, places], peers, check)


def total(n: int) -> Case:
    b = Builder()
    x, out = b.buffer("f32", n), b.buffer("f32", 1, "write")
    r, k = b.reduced(n, 1)
    b.store(out, Index(), b.reduce("sum", (r,), b.load(x, k)))
    xs, got = RNG.random(n, dtype="f4"), np.zeros(1, "f4")
    true = float(xs.astype("f8").sum())
    peers: dict[str, Callable[[], Any]] = {"numpy": xs.sum}
    peers |= jax_peer(lambda x: x.sum(), xs) | torch_peer(lambda t, x: x.sum(), xs)
    peers |= numexpr_peer("sum(x)", x=xs) | numba_peer(_sum_loop, xs)
    numpy_error = abs(float(xs.sum()) - true)

    def check() -> bool:
        return abs(float(got[0]) - true) <= max(4 * numpy_error, 1e-6 * true)

    return Case(f"sum {n:.0e}", b.finish(), {}, [xs, got], peers, check)


def _sum_loop(x: Any) -> Any:
    total = x[0] * 0
    for value in x:
        total += value
    return total


def fused(n: int) -> Case:
    """tanh(exp(-x*x)+b)*sigmoid(x)"""
    b = Builder()
    x, out = b.buffer("f32", n), b.buffer("f32", n, "write")
    i = b.axis(n)
    v, c = b.load(x, i), b.literal("f32", 0.3)
    e = b.op("exp", "f32", b.op("neg", "f32", b.op("mul", "f32", v, v)))
    t = b.op("tanh", "f32", b.op("add", "f32", e, c))
    b.store(out, i, b.op("mul", "f32", t, b.op("sigmoid", "f32", v)))
    xs, got = normal(n), np.zeros(n, "f4")

    def plain(x: Any, lib: Any = np) -> Any:
        return lib.tanh(lib.exp(-x * x) + lib.float32(0.3)) / (1 + lib.exp(-x))

    def with_jax(x: Any) -> Any:
        import jax
        import jax.numpy as jnp

        return jnp.tanh(jnp.exp(-x * x) + jnp.float32(0.3)) * jax.nn.sigmoid(x)

    def with_torch(t: Any, x: Any) -> Any:
        return t.tanh(t.exp(-x * x) + 0.3) * t.sigmoid(x)

    peers: dict[str, Callable[[], Any]] = {"numpy": lambda: plain(xs)}
    peers |= jax_peer(with_jax, xs) | torch_peer(with_torch, xs)
    peers |= numexpr_peer("tanh(exp(-x*x)+c)/(1+exp(-x))", x=xs, c=np.float32(0.3))
    return Case(f"fused maths {n}", b.finish(), b.literals, [xs, got], peers, close(got, plain(xs)))


CASES: dict[str, list[Callable[[], Case]]] = {
    "muladd": [
        lambda: multiply_add(1024, 1024),
        lambda: multiply_add(1000, 1003),
        lambda: multiply_add(16384, 64),
        lambda: multiply_add(10000, 50),
        lambda: multiply_add(30, 60),
    ],
    "transpose": [lambda: transpose(1024), lambda: transpose(1003)],
    "softmax": [
        lambda: softmax(1024, 1024, 1),
        lambda: softmax(16384, 64, 1),
        lambda: softmax(64, 65536, 1),
        lambda: softmax(1000, 1003, 1),
    ],
    "first": [lambda: softmax(1024, 1024, 0)],
    "layernorm": [lambda: layernorm(1024, 1024)],
    "gather": [lambda: embedding(50000, 128, 256, 64)],
    "scatter": [lambda: scatter(10**6, 10**5, 1), lambda: scatter(16384, 4096, 64)],
    "sort": [
        lambda n=n, m=m, o=o, d=d: sort(n, m, o, d)  # type: ignore[misc]
        for o, d in (("sort", "f32"), ("argsort", "f32"), ("argsort", "f64"))
        for n, m in ((2000, 50), (100, 1000), (1, 10**6))
    ],
    "concat": [lambda: concatenated(1024, 512, 512), lambda: concatenated(1024, 500, 524)],
    "stencil": [lambda: stencil(1024, 1024)],
    "argmax": [lambda: argmax(1024, 1024)],
    "sum": [lambda: total(10**7)],
    "fused": [lambda: fused(1000), lambda: fused(100_000)],
    "dtypes": [
        lambda d=d: multiply_add(1024, 1024, d)  # type: ignore[misc]
        for d in ("f64", "i32", "i64", "bool", "bf16")
    ],
}


# The ratios set as marks: NumPy's and JAX's time over ours.
MARKS = {
    "x*y+b 1024x1024": (1.95, 1.49),
    "x*y+b 1000x1003": (2.00, 1.96),
    "x.T*2+z 1024": (9.08, 10.9),
    "softmax last 1024x1024": (4.14, 2.79),
    "softmax last 16384x64": (6.41, 2.78),
    "softmax last 64x65536": (3.85, 3.12),
    "softmax first 1024x1024": (2.73, 2.07),
    "layernorm 1024x1024": (11.0, 4.16),
    "gather+add+mean": (7.82, 6.43),
    "concat 1024x(512+512)": (2.55, 2.06),
    "pad+stencil 1024x1024": (11.0, 6.67),
    "argmax+max 1024x1024": (2.80, 24.3),
    "sum 1e+07": (2.48, 2.35),
    "x*y+b 1024x1024 f64": (2.54, 2.65),
    "x*y+b 1024x1024 i32": (1.90, 2.43),
    "x*y+b 1024x1024 i64": (2.49, 2.60),
    "x*y+b 1024x1024 bool": (1.49, 1.74),
    "x*y+b 1024x1024 bf16": (15.1, 2.84),
}


def floors(case: Case) -> dict[str, Callable[[], Any]]:
    """Passes over the memory that a case has to touch: its large inputs and its large output.
    What is shorter than the longest is left out, or counted together."""
    if isinstance(case.kernel, str):
        roles = ["read", "write"]  # and scratch memory, which nobody has to touch
    else:
        roles = [b.role for b in case.kernel.buffers[: len(case.arrays)]]
    sizes = [a.nbytes for a in case.arrays[: len(roles)]]
    large = [n for n, size in enumerate(sizes) if size * 8 > max(sizes)]
    reads = [n for n in large if roles[n] == "read"]
    length = case.touched or max(sizes[n] for n in large)
    outputs = [n for n in large if n not in reads and sizes[n] >= length]
    inputs = [case.arrays[n] for n in reads]
    if any(a.nbytes < length for a in inputs):  # joined they are as long as the output
        inputs = [np.ones(length, np.uint8)] * (sum(a.nbytes for a in inputs) // length)
    found: dict[str, Callable[[], Any]] = {}
    for label, past in (("streamed", ", !nontemporal !{i32 1}"), ("plain", "")):
        if label == "plain" and not outputs:
            continue
        data = assemble(_pass_text(len(inputs), len(outputs), past), host_target())
        image = load([data], ["touch"])
        touch = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(image.address("touch"))
        room = [np.zeros(max(sizes[n], length) + 128, np.uint8) for n in outputs]
        places = [a.ctypes.data for a in inputs]
        places += [a.ctypes.data + -a.ctypes.data % 64 for a in room]
        table = np.array([*places, 0], np.uint64)
        sink = np.zeros(64, np.uint8)
        table[-1] = sink.ctypes.data
        case.keep += [image, inputs, room, table, sink]
        given = (table.ctypes.data, length // 256)
        found[label] = lambda touch=touch, given=given: touch(*given)  # type: ignore[misc]
    return found


def _pass_text(inputs: int, outputs: int, past: str) -> str:
    """Four lines of each array a turn: inputs are added up, outputs get the sums."""
    ty, count = "<8 x i64>", inputs + outputs + 1
    lines = ["define void @touch(ptr %table, i64 %turns) {", "entry:"]
    for n in range(count):
        lines.append(f"  %r{n} = getelementptr ptr, ptr %table, i64 {n}")
        lines.append(f"  %p{n} = load ptr, ptr %r{n}")
    lines += ["  br label %turn", "turn:", "  %i = phi i64 [ 0, %entry ], [ %j, %turn ]"]
    for k in range(4):
        lines.append(f"  %s{k} = phi {ty} [ zeroinitializer, %entry ], [ %t{k}, %turn ]")
    lines.append("  %at = shl i64 %i, 8")
    for k in range(4):
        lines.append(f"  %a{k} = add i64 %at, {64 * k}")
        last = f"%s{k}" if not outputs else "zeroinitializer"
        for n in range(inputs):
            lines.append(f"  %q{k}.{n} = getelementptr i8, ptr %p{n}, i64 %a{k}")
            lines.append(f"  %x{k}.{n} = load {ty}, ptr %q{k}.{n}, align 1")
            lines.append(f"  %y{k}.{n} = add {ty} {last}, %x{k}.{n}")
            last = f"%y{k}.{n}"
        for n in range(inputs, inputs + outputs):
            lines.append(f"  %q{k}.{n} = getelementptr i8, ptr %p{n}, i64 %a{k}")
            lines.append(f"  store {ty} {last}, ptr %q{k}.{n}, align 64{past}")
        lines.append(f"  %t{k} = add {ty} {last}, zeroinitializer")
    lines += ["  %j = add i64 %i, 1", "  %more = icmp slt i64 %j, %turns"]
    lines += ["  br i1 %more, label %turn, label %end", "end:", "  fence seq_cst"]
    lines += [f"  %u0 = add {ty} %t0, %t1", f"  %u1 = add {ty} %t2, %t3"]
    lines += [f"  %u = add {ty} %u0, %u1", f"  store {ty} %u, ptr %p{count - 1}, align 1"]
    return "\n".join([*lines, "  ret void", "}"])


@dataclass
class Code:
    """A compiled kernel: its function, the sizes it is given, what else a call needs."""

    function: Callable[..., Any]
    kernel: Kernel
    sizes: tuple[int, ...]
    extent: int


def code_of(case: Case, general: bool = True) -> tuple[Code, float]:
    """The code of a case, and the milliseconds it took to compile. A general kernel is given its
    sizes, another is made for these alone."""
    target = host_target()
    sizes: tuple[int, ...] = ()
    started = time.perf_counter()
    if isinstance(case.kernel, str):
        kernel, name, extent = Kernel((), (), (), (), ()), case.kernel, len(case.arrays[0])
        case.literals[0] = case.arrays[0].shape[1].to_bytes(8, "little")
        data = assemble(sort_text(name, target), target)
    else:
        kernel = tune(case.kernel)
        call = generalise(kernel) if general else SizedKernel(kernel)
        sizes = call.sizes
        code, compiled = prepare(call, target)
        name, extent = code.name, compiled.extent(call)
        data = assemble(module_text([code], target), target)
    taken = (time.perf_counter() - started) * 1e3
    image = load([data], [name])
    case.keep.append(image)
    kind = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
    )
    return Code(kind(image.address(name)), kernel, sizes, extent), taken


def call_of(case: Case, code: Code, arrays: Sequence[Array]) -> Callable[[], Any]:
    """A call of code with these arrays, and scratch memory of the case's own."""
    scratch = code.kernel.buffers[len(arrays) :]
    if scratch and not case.scratch:
        case.scratch = [np.empty(b.size, DTYPES[b.dtype]) for b in scratch]
    places = [a.ctypes.data for a in (*arrays, *case.scratch)]
    table = np.array([*places, 0, 0], np.uint64)  # no polls
    raw = bytearray(16 * max(len(case.literals), len(code.kernel.params)))
    for number, literal in case.literals.items():
        raw[16 * number : 16 * number + len(literal)] = literal
    params = np.frombuffer(bytes(raw) + np.array(code.sizes, np.int64).tobytes(), np.uint8)
    case.keep += [table, params, arrays]
    given = (table.ctypes.data, params.ctypes.data, 0, code.extent)
    return lambda: code.function(*given)


def measure(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The least seconds a call of each took, in interleaved rounds of a few ms each.

    Short calls are timed many at once, long ones singly, so that a pause of the machine spoils
    one sample and not a round. The first two or three of a turn find the caches full of another's
    arrays, so there are six at least.
    """
    plans = {}
    for name, call in calls.items():
        least = min(_timed(call, 1) for _ in range(3))
        batch = max(1, int(5e-5 / max(1e-7, least)))
        plans[name] = batch, max(6, int(4e-3 / max(1e-7, least * batch)))
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            batch, samples = plans[name]
            for _ in range(samples):
                best[name] = min(best[name], _timed(call, batch))
    return best


def _timed(
    call: Callable[[], Any], batch: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    started = clock()
    for _ in range(batch):
        call()
    return (clock() - started) / batch


def chosen(names: Sequence[str]) -> Iterator[Case]:
    for name, makers in CASES.items():
        if not names or name in names:
            for make in makers:
                yield make()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--compile", action="store_true", help="torch.compile too; it takes long")
    parser.add_argument("--general", action="store_true", help="general kernels against fixed")
    options = parser.parse_args()
    OPTIONS["compile"] = options.compile
    if options.general:
        compare(options.cases, options.rounds)
        return
    print(f"{'case':26s} {'ours µs':>9s} {'floor':>8s}  compile ms   peers (× ours, mark)")
    for case in chosen(options.cases):
        code, taken = code_of(case)
        ours = call_of(case, code, case.arrays)
        ours()
        good = case.check()
        passes = floors(case)
        best = measure({"ours": ours} | passes | case.peers, options.rounds)
        mine = best.pop("ours")
        floor = min(best.pop(label) for label in passes)
        marks = dict(zip(("numpy", "jax"), MARKS.get(case.name, ()), strict=False))
        peers = "  ".join(
            f"{n} {t * 1e6:9.1f} ({t / mine:5.2f}{judged(t, mine, floor, marks.get(n))})"
            for n, t in best.items()
        )
        figures = f"{mine * 1e6:9.1f} {floor * 1e6:8.1f}  {taken:10.1f}"
        print(f"{case.name:26s} {figures}   {peers}{'' if good else '  WRONG'}", flush=True)


WAYS = (0, 64, 1088, 2112)  # bytes that each array lies farther into its page than the one before


def compare(names: Sequence[str], rounds: int) -> None:
    """What it costs that a kernel is for any sizes."""
    print(f"{'case':26s} {'general µs':>10s} {'fixed µs':>10s}  ratio   of each way   compile ms")
    for case in chosen(names):
        if isinstance(case.kernel, str):
            continue  # a sort is given its length
        (general, ms), (fixed, fixed_ms) = code_of(case), code_of(case, general=False)
        call_of(case, general, case.arrays)()
        good = case.check()
        ratios, best = [], [float("inf")] * 2
        for step in WAYS:
            arrays = laid(case.arrays, step)
            pair = [call_of(case, code, arrays) for code in (general, fixed)]
            ratio, times = paired(*pair, rounds)
            ratios.append(ratio)
            best = [min(a, b) for a, b in zip(best, times, strict=True)]
        figures = " ".join(f"{t * 1e6:10.1f}" for t in best)
        each = " ".join(f"{ratio:.2f}" for ratio in ratios)
        figures += f"  {median(ratios):5.3f}   {each}   {ms:5.1f} {fixed_ms:5.1f}"
        print(f"{case.name:26s} {figures}{'' if good else '  WRONG'}", flush=True)


def laid(arrays: Sequence[Array], step: int) -> list[Array]:
    """Copies of arrays, each so many bytes farther into a page than the one before."""
    copies = []
    for n, array in enumerate(arrays):
        room = np.empty(array.nbytes + 2 * PAGE, np.uint8)
        start = -room.ctypes.data % PAGE + n * step % PAGE
        copies.append(room[start : start + array.nbytes].view(array.dtype).reshape(array.shape))
        copies[-1][...] = array
    return copies


def paired(
    one: Callable[[], Any], other: Callable[[], Any], rounds: int
) -> tuple[float, list[float]]:
    """How much longer one takes than the other: the median of pairs of slices, of which now the
    one comes first and now the other. And the least time of each."""
    calls = one, other
    batch = max(2, int(SLICE / max(1e-7, min(_timed(one, 3) for _ in range(3)))))
    ratios, best = [], [float("inf")] * 2
    for n in range(4 * rounds):
        taken = [0.0, 0.0]
        for which in (0, 1) if n % 2 else (1, 0):
            calls[which]()  # what the other left in the caches is no part of it
            taken[which] = _timed(calls[which], batch, time.thread_time)
        ratios.append(taken[0] / taken[1])
        best = [min(a, b) for a, b in zip(best, taken, strict=True)]
    return median(ratios), best


def judged(peer: float, mine: float, floor: float, mark: float | None) -> str:
    """The mark behind a ratio, with how it was met."""
    if mark is None:
        return ""
    sign = "=" if peer / mine >= mark else "!" if peer / floor < mark else "<"
    return f" {sign} {mark:.2f}"


if __name__ == "__main__":
    main()
