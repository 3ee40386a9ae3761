"""Element generators, compositions and ranges against the references: kernels are run by a
plain interpreter that looks at the whole iteration space at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tenfold.graph import Builder as GraphBuilder
from tenfold.graph import Op, check
from tenfold.graph.op import Composition, Element, Pointwise, Ranges
from tenfold.kernel import Builder, Index, Kernel, verify
from tenfold.kernel.ir.index import axis, flat, strides
from tenfold.kernel.ir.kernel import COMPARISONS
from tenfold.ops import TABLE
from tenfold.ops.elements import NEGATIVE_POWER, OUT_OF_RANGE, Read, Site
from tenfold.ops.ranges import Start, WrittenRange
from tenfold.ops.rows.casts import converted
from tenfold.parity.rule.agree import disagreement, judged
from tenfold.types import DTYPES, KIND, SHORT, TensorType, parse_type

UFUNCS = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "any": np.logical_or,
    "all": np.logical_and,
}


def interpret(
    kernel: Kernel, buffers: Sequence[Any], literals: Mapping[int, bytes]
) -> tuple[list[Any], int]:
    """The values of the kernel's instructions over the whole space, and its fault."""
    full = tuple(a.extent for a in kernel.axes)
    grid = dict(enumerate(np.indices(full)))
    values: list[Any] = []

    def at(index: Index) -> Any:
        known = {v: np.broadcast_to(values[v], full).astype(np.int64) for v in index.values()}
        return np.broadcast_to(np.asarray(index.evaluate(grid, known)), full)

    for i in kernel.instructions:
        args = [values[a] for a in i.args]
        dtype = DTYPES[i.dtype]
        if i.op == "load":
            places, data = at(i.index), buffers[i.attr[0]]  # type: ignore[arg-type]
            wanted = args[0] if args else np.array(True)
            places, wanted = np.broadcast_arrays(places, wanted)
            touched = places[wanted]
            assert np.all((touched >= 0) & (touched < data.size)), "a load out of bounds"
            made = np.zeros(full, dtype)
            made[wanted] = data[touched]
        elif i.op == "const":
            made = np.frombuffer(i.attr[0], dtype).reshape(())
        elif i.op == "param":
            made = np.frombuffer(literals[i.attr[0]], dtype).reshape(())
        elif i.op == "index":
            made = at(i.index).astype(dtype)  # type: ignore[arg-type]
        elif i.op == "inside":
            place = at(i.index)  # type: ignore[arg-type]
            made = (i.attr[0] <= place) & (place < i.attr[1])
        elif i.op == "select":
            made = np.where(*args)
        elif i.op == "cast":
            made = converted(args[0], dtype)
        elif i.op == "bitcast":
            made = args[0].view(dtype)
        elif i.op == "reduce":
            kind, *axes = i.attr
            made = _reduced(kind, axes, [np.broadcast_to(a, full) for a in args])
        elif i.op == "state":
            made = args[0].position[i.attr[0] - 1]
        else:
            if i.op == "pow" and KIND[dtype] == "i":  # the reference would raise: note the fault
                args[1] = np.maximum(args[1], 0)
            made = TABLE[i.op].reference(*args)
        values.append(made)
        assert made.dtype == dtype, (i, made.dtype)
    fault = 0
    for c in kernel.checks:
        fault |= (not np.all(values[c.condition])) << c.code
    return values, fault


class _Extreme(np.ndarray):  # type: ignore[type-arg]
    """The first state of argmin or argmax, with the others beside it."""

    position: list[Any]


def _reduced(kind: str, axes: Sequence[int], args: Sequence[Any]) -> Any:
    if kind in UFUNCS:
        return UFUNCS[kind].reduce(args[0], tuple(axes), dtype=args[0].dtype, keepdims=True)
    (along,) = axes
    wide = args[0].astype(np.float64) if args[0].dtype.kind == "V" else args[0]
    best = (np.argmax if kind == "argmax" else np.argmin)(wide, along, keepdims=True)
    made = np.take_along_axis(args[0], best, along).view(_Extreme)
    made.position = [np.take_along_axis(args[1], best, along)]
    return made


def kernel_of(op: Op, types: Sequence[TensorType], given: Mapping[str, Any]) -> Any:
    """A kernel of this op alone: inputs are loaded, each element of the result is stored."""
    (result,) = op.infer(tuple(types), given, ())
    b = Builder()
    inputs = [b.buffer(SHORT[t.dtype], t.size) for t in types]
    output = b.buffer(SHORT[result.dtype], result.size, "write")
    position = tuple(b.axis(n) for n in result.shape)
    if isinstance(op.lowering, Pointwise):
        args = []
        for number, type in enumerate(types):
            own = position[len(position) - type.rank :]
            own = tuple(p if n != 1 else Index() for p, n in zip(own, type.shape, strict=True))
            args.append(b.load(inputs[number], flat(own, strides(type.shape))))
        dtype = "bool" if op.name in COMPARISONS else SHORT[result.dtype]
        value = b.op(op.lowering.instruction, dtype, *args)
    else:
        assert isinstance(op.lowering, Element)
        generator = op.lowering.generate(Site(b, position, types, given))
        reply = None
        while True:
            try:
                wish = generator.send(reply)
            except StopIteration as end:
                value = end.value
                break
            assert isinstance(wish, Read)
            assert len(wish.position) == types[wish.input].rank
            place = flat(wish.position, strides(types[wish.input].shape))
            reply = b.load(inputs[wish.input], place, wish.condition)
    b.store(output, flat(position, strides(result.shape)), value)
    kernel = b.finish()
    verify(kernel)
    return kernel, b.literals, result


def evaluated(op: Op, arrays: Sequence[Any], given: Mapping[str, Any]) -> tuple[Any, int]:
    types = [TensorType(a.dtype, a.shape) for a in arrays]
    kernel, literals, result = kernel_of(op, types, given)
    buffers = [np.ascontiguousarray(a).reshape(-1) for a in arrays]
    values, fault = interpret(kernel, buffers, literals)
    made = np.empty(result.size, result.dtype)
    (store,) = kernel.stores
    parallel = [n for n, a in enumerate(kernel.axes) if a.kind == "parallel"]
    assert store.index.axes() <= set(parallel)
    shape = tuple(a.extent if a.kind == "parallel" else 1 for a in kernel.axes)
    places = np.broadcast_to(store.index.evaluate(dict(enumerate(np.indices(shape)))), shape)
    made[places.reshape(-1)] = np.broadcast_to(values[store.value], shape).reshape(-1)
    return made.reshape(result.shape), fault


LOWERED = [
    pytest.param(op, id=op.name)
    for op in TABLE.values()
    if isinstance(op.lowering, Element | Pointwise)
]


@pytest.mark.parametrize("op", LOWERED)
def test_elements_give_what_the_reference_gives(op: Op, same: Callable[..., None]) -> None:
    for sample in op.samples(np.random.default_rng(5)):
        given = dict(op.normalise(sample.attributes))
        want = op.reference(*sample.inputs, **given)
        if not want.size:
            continue  # no element, so no kernel
        got, fault = evaluated(op, sample.inputs, given)
        assert not fault
        if isinstance(op.lowering, Element) and op.bound:
            builder = GraphBuilder(TABLE)
            inputs = [builder.parameter(TensorType(a.dtype, a.shape)) for a in sample.inputs]
            graph = builder.finish(builder.node(op.name, inputs, given), inputs)
            (one,) = judged(graph, sample.inputs)
            assert disagreement(got, one) is None, sample
        else:
            same(got, want)


def test_a_gather_out_of_range_faults() -> None:
    x, given = np.arange(4.0), {"axes": (0,), "at": 0, "mode": "raise"}
    for index, faulty in (([0, -4, 3], 0), ([4, 0, 0], 1), ([0, -5, 1], 1)):
        _, fault = evaluated(TABLE["gather"], [x, np.array(index)], given)
        assert fault == faulty << OUT_OF_RANGE


def test_an_integer_to_a_negative_power_faults() -> None:
    for exponent, faulty in ((2, 0), (0, 0), (-1, 1)):
        _, fault = evaluated(TABLE["pow"], [np.array(1.0), np.array(float(exponent))], {})
        assert fault == 0
        kernel, literals, _ = kernel_of(TABLE["pow"], [parse_type("i32"), parse_type("i32")], {})
        data = [np.array([3], np.int32), np.array([exponent], np.int32)]
        _, fault = interpret(kernel, data, literals)
        assert fault == faulty << NEGATIVE_POWER
        assert len(kernel.checks) == 1


def test_a_gather_that_does_not_count_does_not_fault() -> None:
    b = Builder()
    x, ids = b.buffer("f32", 4), b.buffer("i64", 3)
    i = b.axis(3)
    condition = b.inside(i, 0, 2)
    types = (TensorType(DTYPES["f32"], (4,)), TensorType(DTYPES["i64"], (3,)))
    given = {"axes": (0,), "at": 0, "mode": "raise"}
    generator = TABLE["gather"].lowering.generate(  # type: ignore[union-attr]
        Site(b, (i,), types, given, 1, condition)
    )
    wish = next(generator)
    wish = generator.send(b.load(ids, wish.position[0], condition))
    value = b.load(x, wish.position[0], condition)
    b.store(b.buffer("f32", 3, "write"), i, value)
    for index, faulty in (([0, 1, 9], 0), ([0, 9, 0], 1)):
        data = [np.arange(4, dtype=np.float32), np.array(index)]
        assert interpret(b.finish(), data, {})[1] == faulty


def test_equal_extents_share_a_reduced_axis_and_several_have_turns() -> None:
    op = TABLE["reduce_sum"]
    type = TensorType(DTYPES["f32"], (3, 4, 3))
    kernel, _, _ = kernel_of(op, [type], {"axes": (0, 2)})
    assert sum(a.kind == "reduced" for a in kernel.axes) == 2


def test_sixteen_bit_floats_add_up_in_f32() -> None:
    type = TensorType(DTYPES["bf16"], (512,))
    kernel, _, _ = kernel_of(TABLE["reduce_sum"], [type], {"axes": (0,)})
    (reduce,) = [i for i in kernel.instructions if i.op == "reduce"]
    assert reduce.dtype == "f32"


@pytest.mark.parametrize(
    "op",
    [pytest.param(o, id=o.name) for o in TABLE.values() if isinstance(o.lowering, Composition)],
)
def test_compositions_give_what_the_reference_gives(
    op: Op, run: Callable[..., Any], same: Callable[..., None]
) -> None:
    assert isinstance(op.lowering, Composition)
    for sample in op.samples(np.random.default_rng(6)):
        given = dict(op.normalise(sample.attributes))
        types = tuple(TensorType(a.dtype, a.shape) for a in sample.inputs)
        builder = GraphBuilder(TABLE)
        inputs = [builder.parameter(t) for t in types]
        graph = check(builder.finish(op.lowering.compose(builder, inputs, given)), TABLE)
        assert graph.output_types == op.infer(types, given, ())
        assert op.name not in {n.op for n in graph.nodes}
        wanted = op.reference(*sample.inputs, **given)
        results = run(graph, list(sample.inputs))
        for got, want in zip(results, _row(wanted), strict=True):
            if op.bound and KIND[want.dtype] in "fc":
                close(op, got, want)
            else:
                same(got, want)


def _row(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def close(op: Op, got: Any, want: Any) -> None:
    """Within the bound, in units in the last place of the result or of 1; a cumulative op or a
    contraction adds up to sixteen numbers here."""
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    wide = np.complex128 if KIND[want.dtype] == "c" else np.float64
    part = np.real(np.zeros(1, want.dtype)).dtype
    loose = (op.bound + 1) * 4 * float(ml_dtypes.finfo(part).eps)
    np.testing.assert_allclose(got.astype(wide), want.astype(wide), loose, loose)


@pytest.mark.parametrize(
    "op", [pytest.param(o, id=o.name) for o in TABLE.values() if isinstance(o.lowering, Ranges)]
)
def test_ranges_cover_the_result(op: Op, same: Callable[..., None]) -> None:
    assert isinstance(op.lowering, Ranges)
    for sample in op.samples(np.random.default_rng(7)):
        given = dict(op.normalise(sample.attributes))
        types = tuple(TensorType(a.dtype, a.shape) for a in sample.inputs)
        (result,) = op.infer(types, given, ())
        made, covered = np.zeros(result.shape, result.dtype), np.zeros(result.shape, bool)
        for part in op.lowering.ranges(types, given):
            assert isinstance(part, WrittenRange)
            array = sample.inputs[part.input]
            firsts = [
                min(max(int(sample.inputs[s.input]), 0), s.limit) if isinstance(s, Start) else s
                for s in part.starts
            ]
            window = tuple(slice(a, a + n) for a, n in zip(firsts, array.shape, strict=True))
            made[window], covered[window] = array, True
        assert covered.all()
        same(made, op.reference(*sample.inputs, **given))


def test_an_axis_of_one_stands_at_zero() -> None:
    assert axis(0, 1) == Index()
