"""What is wrong or missing raises an error that says what, where and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.errors import (
    ConcreteError,
    MutationError,
    ScopeError,
    ShapeError,
    TenfoldError,
    TypeMismatch,
    Unsupported,
    ValueProblem,
)

M = np.arange(12.0).reshape(3, 4)

WRONG: list[tuple[Any, Any, str]] = [
    (lambda m: np.shares_memory(m, m), Unsupported, r"np.shares_memory is not among"),
    (lambda m: np.save("x", m), Unsupported, "np.save is not among .*: a file is written"),
    (lambda m: np.roots(m[0]), ConcreteError, "np.roots: how many leading coefficients"),
    (lambda m: np.quantile(m, 1.5), ValueProblem, "give numbers from 0 to 1"),
    (lambda m: np.quantile(m, 0.5, method="best"), ValueProblem, "the methods are"),
    (lambda m: np.median(m, axis=2), ShapeError, "axis 2"),
    (lambda m: np.delete(m, m.argmax()), ConcreteError, "traced places"),
    (lambda m: np.delete(m, 99), IndexError, "delete from axis 0"),
    (lambda m: np.insert(m, 99, 1), IndexError, "it has 12 elements"),
    (lambda m: np.cov(m[None]), ShapeError, "a vector or a matrix"),
    (lambda m: np.real_if_close(m + 1j), ConcreteError, "dtype hangs on values"),
    (lambda m: np.subtract.reduce(m, axis=(0, 1)), ValueProblem, "whose order counts"),
    (lambda m: np.less.reduce(m), TypeMismatch, "results have another dtype"),
    (lambda m: np.linalg.inv(m), ShapeError, "no square matrix"),
    (lambda m: np.unique(m)[1:], ConcreteError, "tn.unique"),
    (lambda m: np.gcd(m, m), TypeMismatch, "np.gcd does not take float64"),
    (lambda m: m.searchsort(), AttributeError, "no attribute 'searchsort'"),
    (lambda m: m.byteswap(), Unsupported, "x.byteswap is not among"),
    (lambda m: setattr(m, "shape", 12), MutationError, "x = x.reshape"),
    (lambda m: m.ctypes, Unsupported, "x.ctypes"),
    (lambda m: np.pad(m, 1, "linear_ramp", end_values=2), Unsupported, "but not with end_values"),
    (lambda m: np.matmul(m, m.T, axes=[(0, 1)] * 3), Unsupported, "not with axes"),
    (lambda m: np.add(m, 1, casting="safe"), Unsupported, "casting='safe'"),
    (lambda m: np.reshape(m, (5, -1)), ShapeError, "does not take the shape"),
    (lambda m: m.reshape(5), ShapeError, "12 elements"),
    (lambda m: m.T.ravel("K"), Unsupported, "how it lies in memory"),
    (lambda m: m.reshape(m.sum()), ConcreteError, "make the argument static"),
    (lambda m: np.histogram(m, m.argmax()), ConcreteError, "make the argument static"),
    (lambda m: m.sum(axis=2), ShapeError, "axis 2 of an array with 2 axes"),
    (lambda m: m.sum(axis=(0, 0)), ShapeError, "an axis twice"),
    (lambda m: m.sum(axis=m.argmax()), ConcreteError, "an axis is a traced value"),
    (lambda m: m.sum(axis="a"), TypeMismatch, "an axis has to be an integer"),
    (lambda m: np.transpose(m, (0,)), ShapeError, "name each of its 2 axes once"),
    (lambda m: np.squeeze(m, 0), ShapeError, "extent 3, not 1"),
    (lambda m: np.moveaxis(m, (0, 1), 0), ShapeError, "moveaxis"),
    (lambda m: np.broadcast_to(m, (4, 3)), ShapeError, "does not broadcast"),
    (lambda m: np.concatenate([]), ValueError, "at least one"),
    (lambda m: np.concatenate([m, m[0]]), ShapeError, "differ in rank"),
    (lambda m: np.concatenate([m, m[:, :1]]), ShapeError, "concatenate"),
    (lambda m: np.concatenate([m[0, 0], m[0, 0]]), ShapeError, "np.stack"),
    (lambda m: np.stack([m, m[0]]), ShapeError, "differ in shape"),
    (lambda m: np.split(m, 2), ShapeError, "np.array_split"),
    (lambda m: np.array_split(m, m.argmax()), ConcreteError, "tn.dynamic_slice"),
    (lambda m: np.repeat(m, m.argmax(1)), ConcreteError, "repeat with traced counts"),
    (lambda m: np.tile(m, m.argmax()), ConcreteError, "repetitions"),
    (lambda m: np.pad(m, -1), ShapeError, "negative width"),
    (lambda m: np.pad(m, 1, "mean"), Unsupported, "mode='mean'"),
    (lambda m: np.pad(m, 5, "reflect"), Unsupported, "at most"),
    (lambda m: m @ m, ShapeError, "matmul.* do not meet"),
    (lambda m: m @ 2, ShapeError, "multiply by numbers"),
    (lambda m: np.dot(m, m), ShapeError, "dot.* do not meet"),
    (lambda m: np.tensordot(m, m, 1), ShapeError, "tensordot"),
    (lambda m: np.einsum("ij,jk", m, m), ShapeError, "label 'j' has the extents 4 and 3"),
    (lambda m: np.einsum("ij", m, m), ValueProblem, "names 1 operands"),
    (lambda m: np.einsum("ijk->i", m), ValueProblem, "do not fit an operand"),
    (lambda m: np.einsum("ij->k", m), ValueProblem, "no operand has"),
    (lambda m: np.linalg.qr(m.astype(np.float16)), TypeMismatch, "float32"),
    (lambda m: np.linalg.qr(m[0]), ShapeError, "qr"),
    (lambda m: np.linalg.qr(m, "raw"), Unsupported, "mode='raw'"),
    (lambda m: np.linalg.norm(m, 3), Unsupported, "ord=3 over 2 axes"),
    (lambda m: np.max(m[:0]), ShapeError, "empty axis"),
    (lambda m: np.max(m, where=m > 1), ValueProblem, "needs initial="),
    (lambda m: np.argmax(m[:0]), ShapeError, "empty axis"),
    (lambda m: np.average(m, axis=0, weights=[1, 2]), ShapeError, "weights"),
    (lambda m: np.diagonal(m[0]), ShapeError, "two or more axes"),
    (lambda m: np.select([m > 1], []), ShapeError, "1 conditions for 0 choices"),
    (lambda m: m.astype(int) ** -2, ValueProblem, r"write x \*\* -2.0"),
    (lambda m: m.astype("S3"), Unsupported, "dtype"),
    (lambda m: m.astype(int, casting="safe"), TypeMismatch, "casting='safe'"),
    (lambda m: m.view(np.int8), Unsupported, "another size"),
    (lambda m: m + np.ones(5), ShapeError, "do not broadcast"),
    (lambda m: m[0] if m.any() else m[1], ConcreteError, "tn.cond"),
    (lambda m: range(m.argmax()), ConcreteError, "tn.fori_loop"),
    (lambda m: np.asarray_chkfinite(m), ConcreteError, "tn.call_host"),
    (lambda m: float(m.sum()), ConcreteError, r"float\(\) needs the value"),
    (lambda m: len(m.sum()), TypeMismatch, "use .size"),
    (lambda m: list(m.sum()), TypeMismatch, "iteration over a 0-d array"),
    (lambda m: np.stack(np.nonzero(m)), ConcreteError, "only a running program does"),
    (lambda m: m[m > 1].tolist(), ConcreteError, "np.where"),
]


@pytest.mark.parametrize(("f", "kind", "words"), WRONG, ids=[w for _, _, w in WRONG])
def test_wrong_programs(f: Any, kind: Any, words: str, trace: Any) -> None:
    with pytest.raises(kind, match=f"(?s){words}") as caught:
        trace(f, M)
    if isinstance(caught.value, TenfoldError):
        assert "test_errors.py" in (caught.value.where or ""), str(caught.value)


def test_a_missing_attribute_is_an_attribute_error(trace: Any) -> None:
    def f(m: Any) -> Any:
        assert not hasattr(m, "byteswap")
        assert not hasattr(m, "nothing_of_the_kind")
        with pytest.raises(AttributeError, match="nothing_of_the_kind"):
            _ = m.nothing_of_the_kind
        return m

    trace(f, M)


def test_a_leaked_array_is_not_used(trace: Any) -> None:
    kept: list[Any] = []

    def f(m: Any) -> Any:
        kept.append(m * 2)
        return m

    trace(f, M)
    with pytest.raises(ScopeError, match="leaked"):
        kept[0] + 1
    with pytest.raises(ScopeError, match="leaked"):
        np.sum(kept[0])
    with pytest.raises(ScopeError, match="leaked"):
        kept[0][1:]
    with pytest.raises(ScopeError, match="leaked"):
        kept[0][0] = 1
    with pytest.raises(ScopeError, match="leaked"):
        trace(lambda m: m + kept[0], M)
