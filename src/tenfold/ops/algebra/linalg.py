"""Rows of linear algebra: contract, contract_narrow, lu, qr, svd.

The bound of a contraction is in units in the last place of the sum of the magnitudes of the
products, for each doubling of their number. The bounds of the factorings are relative to the
greatest magnitude of the input times its greater extent, and hold for the product of the
factors: signs and the order of equal singular values are the routine's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch, ValueProblem
from tenfold.graph.build import Builder
from tenfold.graph.node import Graph
from tenfold.graph.op import PRODUCT, Attribute, Op, Routine, Sample, TypeRule, Types
from tenfold.ops import attributes as attribute
from tenfold.ops import elements, reads, rules, samples
from tenfold.ops.agreement.named import many, matrices, sums
from tenfold.ops.algebra import products
from tenfold.ops.batching import guards
from tenfold.ops.batching import rules as batching
from tenfold.ops.reference import Array, widened
from tenfold.types import DTYPES, SHORT, Shape, TensorType

Given = Mapping[str, Any]

# Contract.


def _free(rank: int, *taken: Sequence[int]) -> list[int]:
    used = {a for axes in taken for a in axes}
    return [a for a in range(rank) if a not in used]


def _infer_contract(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    return (TensorType(rules.alike("contract", *types), _contracted(types, given)),)


def _infer_narrow(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    for type, allowed in (*((t, products.NARROW) for t in types), (None, ("i32", "u32"))):
        short = given["dtype"] if type is None else SHORT[type.dtype]
        if short not in allowed:
            raise TypeMismatch(
                f"contract_narrow: {short} is none of {', '.join(allowed)}", fix="use contract"
            )
    return (TensorType(DTYPES[given["dtype"]], _contracted(types, given)),)


def _contracted(types: Types, given: Given) -> Shape:
    lhs, rhs = types
    left, right = given["lhs_contract"], given["rhs_contract"]
    left_batch, right_batch = given["lhs_batch"], given["rhs_batch"]
    rules.has_axes("contract", lhs, (*left_batch, *left))
    rules.has_axes("contract", rhs, (*right_batch, *right))
    for what, one, other in (("contract", left, right), ("batch", left_batch, right_batch)):
        if len(one) != len(other):
            raise ShapeError(
                f"contract: {len(one)} axes to {what} on the left, {len(other)} on the right",
                fix="name them in pairs",
            )
        for a, b in zip(one, other, strict=True):
            if lhs.shape[a] != rhs.shape[b]:
                raise ShapeError(
                    f"contract: {lhs} and {rhs} do not meet (axis {a} of the left has "
                    f"{lhs.shape[a]}, axis {b} of the right has {rhs.shape[b]})",
                    fix="axes that are contracted together need equal extents",
                )
    return (
        *(lhs.shape[a] for a in left_batch),
        *(lhs.shape[a] for a in _free(lhs.rank, left_batch, left)),
        *(rhs.shape[a] for a in _free(rhs.rank, right_batch, right)),
    )


def _contract(
    lhs: Array,
    rhs: Array,
    lhs_contract: Shape,
    rhs_contract: Shape,
    lhs_batch: Shape,
    rhs_batch: Shape,
) -> Array:
    plain = lhs.ndim == rhs.ndim == 2 and not lhs_batch
    if plain and lhs_contract == (1,) and rhs_contract == (0,):
        made: Array = np.matmul(lhs, rhs)  # as below, without getting ready for it
        return made
    left, right = _free(lhs.ndim, lhs_batch, lhs_contract), _free(rhs.ndim, rhs_batch, rhs_contract)
    batch = tuple(lhs.shape[a] for a in lhs_batch)
    rows, columns = tuple(lhs.shape[a] for a in left), tuple(rhs.shape[a] for a in right)
    inner = prod(lhs.shape[a] for a in lhs_contract)
    a = lhs.transpose(*lhs_batch, *left, *lhs_contract)
    b = rhs.transpose(*rhs_batch, *rhs_contract, *right)
    made = np.matmul(a.reshape(*batch, prod(rows), inner), b.reshape(*batch, inner, prod(columns)))
    return np.reshape(made, (*batch, *rows, *columns))


def _contract_narrow(lhs: Array, rhs: Array, dtype: str, **axes: Shape) -> Array:
    # What inputs may be off by is asked for in floats.
    a, b = (x.astype(DTYPES[dtype]) if x.dtype.kind in "iu" else x for x in (lhs, rhs))
    return _contract(a, b, **axes)


def _batch_contract(
    name: str,
    builder: Builder,
    inputs: Sequence[int],
    batched: Sequence[bool],
    size: int,
    lhs_contract: Shape,
    rhs_contract: Shape,
    lhs_batch: Shape,
    rhs_batch: Shape,
    **more: str,
) -> batching.Values:
    left, right = batched

    def moved(axes: Shape, up: bool) -> Shape:
        return tuple(a + up for a in axes)

    both = left and right
    made = batching.make(
        builder,
        name,
        *inputs,
        lhs_contract=moved(lhs_contract, left),
        rhs_contract=moved(rhs_contract, right),
        lhs_batch=((0,) if both else ()) + moved(lhs_batch, left),
        rhs_batch=((0,) if both else ()) + moved(rhs_batch, right),
        **more,
    )
    if both:
        return (made,)
    # The leading axis came out as the first free axis of its side.
    at = len(lhs_batch)
    if right:
        at += len(batching.shape_of(builder, inputs[0])) - len(lhs_batch) - len(lhs_contract)
    return (batching.move(builder, made, at, 0),)


_AXES = ("lhs_contract", "rhs_contract", "lhs_batch", "rhs_batch")


def _axes(*given: Shape) -> Given:
    return dict(zip(_AXES, given, strict=True))


_CONTRACTIONS = (
    (((2, 3), (3, 4)), _axes((1,), (0,), (), ())),
    (((3,), (3,)), _axes((0,), (0,), (), ())),
    (((), ()), _axes((), (), (), ())),
    (((2,), (3,)), _axes((), (), (), ())),
    (((2, 0), (0, 3)), _axes((1,), (0,), (), ())),
    (((5, 2, 3), (3, 5, 4)), _axes((2,), (0,), (0,), (1,))),
    (((2, 3, 4), (4, 3, 2)), _axes((1, 2), (1, 0), (), ())),
    (((2, 3), (2, 3)), _axes((), (), (1, 0), (1, 0))),
)


def _narrow_samples(random: samples.Random) -> list[Sample]:
    pairs = list(product(products.NARROW, repeat=2))
    forms = [(shapes, given) for shapes, given in _CONTRACTIONS]
    forms.append((((70, 61), (61, 45)), _axes((1,), (0,), (), ())))  # by the routine
    return [
        Sample(
            tuple(
                samples.anything(random, DTYPES[n], s) for n, s in zip(pair, shapes, strict=True)
            ),
            {**given, "dtype": dtype},
        )
        for dtype in ("i32", "u32")
        for pair in pairs
        for shapes, given in forms
    ]


# Factorings.


def _matrix(name: str, type: TensorType) -> tuple[Shape, int, int, int]:
    """Leading axes, rows, columns, and the lesser of these."""
    rules.require(name, "wc", type)
    if type.rank < 2:
        raise ShapeError(f"{name}: {type} is no matrix", fix="give at least two axes")
    *leading, m, n = type.shape
    return tuple(leading), m, n, min(m, n)


def _finite(name: str, x: Array) -> None:
    if not np.all(np.isfinite(x)):
        raise ValueProblem(
            f"{name}: the matrix has an inf or a NaN in it", fix="remove them before factoring"
        )


def _infer_lu(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    (x,) = types
    leading, m, n, k = _matrix("lu", x)
    p = TensorType(rules.real(x.dtype), (*leading, m, m))
    return (p, *rules.shaped(x.dtype, (*leading, m, k), (*leading, k, n)))


def _lu(x: Array) -> tuple[Array, Array, Array]:
    *leading, m, n = x.shape
    k = min(m, n)
    p = np.zeros((*leading, m, m), rules.real(x.dtype))
    lower = np.zeros((*leading, m, k), x.dtype)
    upper = np.zeros((*leading, k, n), x.dtype)
    for at in np.ndindex(*leading) if m else ():
        rows, packed = _eliminated(x[at])
        p[at][rows, np.arange(m)] = 1
        lower[at] = np.tril(packed[:, :k], -1) + np.eye(m, k, dtype=x.dtype)
        upper[at] = np.triu(packed[:k])
    return p, lower, upper


def _eliminated(matrix: Array) -> tuple[Array, Array]:
    """The order of rows that partial pivoting gives, and both triangles in one matrix. As in LAPACK
    the greatest complex number is the one whose parts add up to most; as in NumPy all of it is in
    double precision."""
    a = matrix.astype(np.result_type(matrix, np.float64))
    m, n = a.shape
    order = np.arange(m)
    for j in range(min(m, n)):
        best = j + int(np.argmax(np.abs(a[j:, j].real) + np.abs(a[j:, j].imag)))
        if best != j:
            a[[j, best]], order[[j, best]] = a[[best, j]], order[[best, j]]
        if a[j, j] != 0:
            a[j + 1 :, j] /= a[j, j]
            a[j + 1 :, j + 1 :] -= np.outer(a[j + 1 :, j], a[j, j + 1 :])
    return order, a


def _infer_qr(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    (x,) = types
    leading, m, n, k = _matrix("qr", x)
    if given["mode"] == "r":
        return rules.shaped(x.dtype, (*leading, k, n))
    inner = m if given["mode"] == "complete" else k
    return rules.shaped(x.dtype, (*leading, m, inner), (*leading, inner, n))


def _qr(x: Array, mode: str) -> tuple[Array, ...]:
    made: Any = np.linalg.qr(x, mode)  # type: ignore[call-overload]
    return (np.asarray(made),) if mode == "r" else (made[0], made[1])


def _infer_svd(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    (x,) = types
    leading, m, n, k = _matrix("svd", x)
    s = TensorType(rules.real(x.dtype), (*leading, k))
    if not given["compute_uv"]:
        return (s,)
    rows, columns = (m, n) if given["full_matrices"] else (k, k)
    u, vh = rules.shaped(x.dtype, (*leading, m, rows), (*leading, columns, n))
    return u, s, vh


def _svd(x: Array, full_matrices: bool, compute_uv: bool) -> tuple[Array, ...]:
    _finite("svd", x)
    if not compute_uv:
        return (np.asarray(np.linalg.svd(x, full_matrices, compute_uv=False)),)
    made = np.linalg.svd(x, full_matrices)
    return made.U, made.S, made.Vh


_MATRICES: tuple[Shape, ...] = (
    (3, 3),
    (4, 2),
    (2, 4),
    (4, 3, 2),
    (0, 3),
    (3, 0),
    (0, 2, 2),
    (1, 1),
)


def factoring(
    name: str,
    infer: TypeRule,
    reference: Any,
    givens: Sequence[Given],
    *attributes: Attribute,
    edges: str,
    raises: bool = False,
) -> Op:
    """A row of an op on the matrices in the last two axes; `raises` if some make it raise."""
    forms = [((shape,), given) for shape in _MATRICES for given in givens]
    return Op(
        name=name,
        arity=1,
        infer=infer,
        reference=reference,
        lowering=Routine(name),
        edges=edges,
        bound=16,
        batch=batching.shifted(name, batching.unchanged),
        samples=samples.listed("wc", *forms, draw=samples.ordinary),
        attributes=attributes,
        heeds=guards.surely if raises else guards.never,
        guard=guards.identity if raises else None,
        reads=reads.matrices,
        error=matrices.MATRICES,
    )


ROWS = (
    Op(
        name="contract",
        arity=2,
        infer=_infer_contract,
        reference=widened(_contract),
        lowering=Routine(PRODUCT, elements.contract, products.inline),
        edges=(
            "integers wrap; bool is the or of ands; over nothing it is 0; sixteen-bit floats add "
            "up in f32; the order of adding is free within the bound"
        ),
        bound=2,
        batch=batching.unless_none(partial(_batch_contract, "contract"), "contract"),
        samples=samples.listed(rules.ANY, *_CONTRACTIONS, draw=samples.ordinary),
        attributes=tuple(attribute.ordered_axes(name) for name in _AXES),
        reads=elements.contract,
        error=sums.CONTRACTION,
        spread=many.CONTRACTION,
    ),
    Op(
        name="contract_narrow",
        arity=2,
        infer=_infer_narrow,
        reference=_contract_narrow,
        lowering=Routine(PRODUCT, elements.contract_narrow, products.inline_narrow),
        edges="operands are cast to the wider integers; these wrap; over nothing it is 0",
        bound=0,
        batch=batching.unless_none(partial(_batch_contract, "contract_narrow"), "contract_narrow"),
        samples=_narrow_samples,
        attributes=(
            *(attribute.ordered_axes(name) for name in _AXES),
            attribute.dtype("dtype"),
        ),
        reads=elements.contract_narrow,
        spread=many.CONTRACTION,
    ),
    factoring(
        "lu",
        _infer_lu,
        _lu,
        [{}],
        edges="A = P @ L @ U; a singular matrix leaves a zero on U's diagonal; NaN spreads",
    ),
    factoring(
        "qr",
        _infer_qr,
        _qr,
        [{"mode": "reduced"}, {"mode": "complete"}, {"mode": "r"}],
        attribute.choice("mode", "reduced", "complete", "r"),
        edges="signs are LAPACK's; NaN spreads",
    ),
    factoring(
        "svd",
        _infer_svd,
        _svd,
        [
            {"full_matrices": True, "compute_uv": True},
            {"full_matrices": False, "compute_uv": True},
            {"full_matrices": False, "compute_uv": False},
        ],
        attribute.flag("full_matrices"),
        attribute.flag("compute_uv"),
        edges="singular values fall; an inf or a NaN raises ValueProblem",
        raises=True,
    ),
)
