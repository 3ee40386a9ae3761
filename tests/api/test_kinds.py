"""Arrays of other libraries: taken by DLPack, and given back as their own kind, where they lay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import TypeMismatch


def test_torch_takes_and_gives() -> None:
    torch = pytest.importorskip("torch")
    x = tn.asarray([1.0, 2.0]) * 2
    tensor = torch.from_dlpack(x)
    assert tensor.tolist() == [2.0, 4.0]
    tensor += 1
    assert x.tolist() == [2.0, 4.0], "it has a copy"
    assert tn.from_dlpack(torch.arange(3)).tolist() == [0, 1, 2]
    assert (tn.asarray(torch.ones(2)) + 1).tolist() == [2.0, 2.0]
    given = tn.jit(lambda a: a * 2)(torch.ones(3, requires_grad=True))
    assert isinstance(given, torch.Tensor)
    assert given.tolist() == [2.0, 2.0, 2.0]


def test_strided_tensors() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(12.0).reshape(3, 4)
    f = tn.jit(lambda a: a + 1)
    for view in (x.T, x[:, ::2], x[1:1], x[0, 0]):
        given = f(view)
        assert given.shape == view.shape
        assert torch.equal(given, view + 1)


def test_bfloat16_tensors() -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([1.0, 2.5, -0.0, float("inf")], dtype=torch.bfloat16)
    given = tn.jit(lambda a: a * 2)(x)
    assert given.dtype == torch.bfloat16
    assert given.tolist() == [2.0, 5.0, 0.0, float("inf")]
    assert tn.asarray(x).dtype == tn.bfloat16


def test_jax_arrays() -> None:
    jax = pytest.importorskip("jax")
    for dtype in ("float32", "bfloat16", "int32", "bool"):
        x = jax.numpy.ones(3, dtype)
        given = tn.jit(lambda a: a + a)(x)
        assert isinstance(given, jax.Array)
        assert given.dtype == x.dtype
        assert np.asarray(given == x + x).all()


def test_what_no_library_hands_on() -> None:
    torch = pytest.importorskip("torch")
    sparse = torch.eye(3).to_sparse()
    with pytest.raises(TypeMismatch, match="move it to the CPU"):
        tn.jit(lambda a: a + 1)(sparse)


def test_bfloat16_has_no_dlpack() -> None:
    with pytest.raises(BufferError, match="bfloat16"):
        tn.ones(2, tn.bfloat16).__dlpack__()


# -- arrays that lie on a device


def _on_device(library: str) -> Any:
    """A function that puts a NumPy array on the first CUDA device."""
    module = pytest.importorskip(library)
    if library == "cupy":
        return module.asarray
    if library == "torch":
        if not module.cuda.is_available():
            pytest.skip("no CUDA device")
        return lambda a: module.from_dlpack(a.copy()).to("cuda")
    devices = [d for d in module.devices() if d.platform == "gpu"]
    if not devices:
        pytest.skip("no CUDA device")
    return lambda a: module.device_put(a, devices[0])


@pytest.mark.parametrize("library", ["cupy", "torch", "jax"])
def test_arrays_on_a_device_come_back_there(library: str) -> None:
    put = _on_device(library)
    f = tn.jit(lambda a, b: (a @ b, a.sum(axis=0), a > 1))
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    b = np.arange(12, dtype=np.float32).reshape(3, 4)
    there = put(a)
    for given, expected in zip(f(there, put(b)), f(a, b), strict=True):
        assert type(given) is type(there)
        assert given.device == there.device
        assert np.array_equal(np.from_dlpack(given, device="cpu"), expected)
    turned = f(put(b).T, put(a).T)[0]
    assert np.array_equal(np.from_dlpack(turned, device="cpu"), f(b.T, a.T)[0])
    assert tn.asarray(there).tolist() == a.tolist()
    assert tn.from_dlpack(there).tolist() == a.tolist()
