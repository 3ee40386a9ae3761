"""Plans saved, loaded, sent to other processes, and tampered with."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import pickle
import random
import subprocess
import sys
import textwrap
from collections import namedtuple

import msgpack
import numpy as np
import pytest
from safetensors_file import write_arrays

import tenfold as tn
from tenfold.backends import registry
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.link.loader import route
from tenfold.backends.cpu.run import code
from tenfold.backends.cpu.run.restored import RestoredProgram
from tenfold.backends.cpu.target import host_target
from tenfold.backends.file import PlanFile
from tenfold.backends.llvm.target import named
from tenfold.errors import FileError, HookError, PlanError, TypeMismatch, ValueProblem
from tenfold.parity.certificate import Certificate
from tenfold.plan.file.sections import Sections, pack

native = pytest.mark.skipif(route() != "elf", reason="code is loaded from files on Linux only")

x = np.linspace(-1, 1, 12).reshape(3, 4).astype("float32")


def energy(x, y):
    return np.tanh(x * 1.5 + y).sum(axis=1), x @ y.T


def saved(tmp_path, function=energy, args=(x, x), **options):
    path = tmp_path / "f.plan"
    tn.jit(function).plan(*args).save(path, **options)
    return path


def equal(a, b):
    return all(np.array_equal(p, q) for p, q in zip(a, b, strict=True))


@pytest.mark.parametrize("trust", [True, False])
def test_a_loaded_plan_gives_what_the_function_gives(tmp_path, trust):
    path = saved(tmp_path)
    plan = tn.load(path, trust_code=trust)
    assert equal(plan(x, x + 1), tn.jit(energy)(x, x + 1))
    assert equal(plan(x, x + 2), tn.jit(energy)(x, x + 2))  # by native code from now on
    assert equal(plan(y=x, x=x), tn.jit(energy)(x, x))
    assert "kernel" in plan.explain()
    assert plan.kernels == plan.plan.kernels


@native
def test_the_certificate_goes_with_the_plan(tmp_path):
    f = tn.jit(lambda x: np.tanh(x) * 3)
    x = np.linspace(0, 1, 6)
    plan = f.plan(x)
    assert plan.certificate == {}  # not checked yet
    f(x)
    assert plan.certificate == f.certificate(x).to_data()
    assert plan.certificate["guards"] > 3
    plan.save(tmp_path / "f.plan")
    loaded = tn.load(tmp_path / "f.plan", trust_code=True)
    assert Certificate.from_data(loaded.certificate) == f.certificate(x)
    assert Certificate.from_data(pickle.loads(pickle.dumps(plan)).certificate) == f.certificate(x)
    assert tn.load(tmp_path / "f.plan").certificate == {}  # its word is taken with its code


def test_untrusted_code_is_ignored_and_that_is_said(tmp_path):
    path = saved(tmp_path)
    plan = tn.load(path)
    assert plan.notes[0] == "code in the file is not trusted"
    assert not isinstance(plan.program, RestoredProgram)
    trusted = tn.load(path, trust_code=True)
    assert isinstance(trusted.program, RestoredProgram)
    assert trusted.notes == (f"code for {host_target().name} from the file",)


def test_containers_numbers_and_defaults(tmp_path):
    Pair = namedtuple("Pair", "a b")

    @dataclasses.dataclass
    class State:
        w: np.ndarray
        n: int

    def f(state, pair, *, scale=2, flag=True):
        return {"s": State(state.w * scale, state.n + 1), "p": Pair(pair.b, [pair.a])}, 3.5

    state, pair = State(x, 4), Pair(x + 1, x + 2)
    path = saved(tmp_path, f, (state, pair))
    plan = tn.load(path)
    got, want = plan(state, pair), tn.jit(f)(state, pair)
    assert type(got[0]["s"]) is State
    assert type(got[0]["p"]) is Pair
    assert np.array_equal(got[0]["s"].w, want[0]["s"].w)
    assert (got[0]["s"].n, got[1]) == (5, 3.5)
    assert type(got[0]["s"].n) is int
    with pytest.raises(TypeMismatch, match=r"made for the arguments \(state, pair\)"):
        plan(state, pair, scale=3)
    with pytest.raises(TypeMismatch, match=r"state\.n is f64"):
        plan(State(x, np.float64(4)), pair)
    with pytest.raises(TypeMismatch, match="containers"):
        plan(state, (x, x))
    with pytest.raises(TypeError):
        plan(state)


def test_other_types_are_named(tmp_path):
    plan = tn.load(saved(tmp_path))
    with pytest.raises(TypeMismatch, match=r"y is f32\[2,4\], this plan was made for f32\[3,4\]"):
        plan(x, x[:2])
    with pytest.raises(TypeMismatch, match=r"x is f64\[3,4\]"):
        plan(x.astype("float64"), x)


def test_static_arguments(tmp_path):
    path = tmp_path / "f.plan"
    tn.jit(lambda x, n: x**n, static="n").plan(x, 3).save(path)
    plan = tn.load(path)
    assert np.allclose(plan(x, 3), x**3)
    with pytest.raises(TypeMismatch, match="n="):
        plan(x, 4)


def test_python_integers_must_still_fit(tmp_path):
    def f(x, n):
        return x + n

    small = np.ones(3, "int8")
    plan = tn.load(saved(tmp_path, f, (small, 5)))
    assert plan(small, 7).tolist() == [8, 8, 8]
    with pytest.raises(OverflowError):
        plan(small, 1000)


def test_captures_are_bound_by_name(tmp_path):
    weights, bias = np.arange(20.0), np.ones(20)

    def f(x):
        return x * weights + bias

    args = (np.ones(20),)
    path = saved(tmp_path, f, args)
    names = dict(tn.jit(f).captures(*args))
    assert np.array_equal(tn.load(path, captures=names)(*args), weights + 1)
    name = next(n for n in names if "weights" in n)
    with pytest.raises(ValueProblem, match="'bias'"):
        tn.load(path, captures={name: weights})
    with pytest.raises(ValueProblem, match="f64"):
        tn.load(path, captures={**names, name: weights[:3]})
    with pytest.raises(ValueProblem, match="'nothing'"):
        tn.load(path, captures={**names, "nothing": weights})
    write_arrays(path.with_suffix(".safetensors"), {**names, "other": x})
    assert np.array_equal(tn.load(path)(*args), weights + 1)
    write_arrays(tmp_path / "more.safetensors", {n: a * 2 for n, a in names.items()})
    doubled = tn.load(path, captures=tmp_path / "more.safetensors", trust_code=True)
    assert np.array_equal(doubled(*args), 2 * weights + 2)
    assert weights.tobytes() not in path.read_bytes()


def test_hooks_are_bound_by_name(tmp_path):
    def f(x):
        tn.hook("seen", x, print)
        return tn.call_host(np.cumsum, tn.spec((12,), "float32"), x.reshape(-1), name="cumsum")

    path = saved(tmp_path, f, (x,))
    with pytest.raises(HookError, match="'cumsum'"):
        tn.load(path, hooks={"seen": None})
    with pytest.raises(HookError, match="'seen'"):
        tn.load(path, hooks={"cumsum": np.cumsum})
    with pytest.raises(ValueProblem, match="'other'"):
        tn.load(path, hooks={"other": None})
    seen = []
    for trust in (True, False):
        plan = tn.load(path, hooks={"seen": seen.append, "cumsum": np.cumsum}, trust_code=trust)
        assert np.allclose(plan(x), np.cumsum(x))
    assert len(seen) == 2


# Trust.


@native
def test_a_signed_file_is_trusted_by_those_with_the_key(tmp_path):
    path = saved(tmp_path, key=b"secret")
    (tmp_path / "key").write_bytes(b"secret")
    for key in (b"secret", tmp_path / "key"):
        assert isinstance(tn.load(path, key=key).program, RestoredProgram)
    with pytest.raises(PlanError, match="not signed by this key"):
        tn.load(path, key=b"other")
    with pytest.raises(PlanError, match="not signed by this key"):
        tn.load(saved(tmp_path), key=b"secret")


@pytest.mark.parametrize("empty", [b"", b"\0\0"])
def test_an_empty_key_is_none(tmp_path, empty):
    """Whoever has no key can sign with the empty one."""
    path = saved(tmp_path)
    read = Sections(path.read_bytes())
    parts = {name: bytes(read.raw(name)) for name in read.names}
    path.write_bytes(pack(parts, key=b""))
    (tmp_path / "key").write_bytes(empty)
    for key in (empty, tmp_path / "key"):
        with pytest.raises(ValueProblem, match="is empty"):
            tn.load(path, key=key)
        with pytest.raises(ValueProblem, match="is empty"):
            saved(tmp_path, key=key)


def test_saving_writes_through_no_link(tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    monkeypatch.setattr(os, "urandom", lambda count: bytes(count))
    planted = [f"f.plan.{os.getpid()}.partial", f"partial-{os.getpid()}-{'00' * 8}"]
    for name in planted:
        (tmp_path / name).symlink_to(victim)
    with pytest.raises(FileExistsError):  # though the name was guessed
        saved(tmp_path)
    assert victim.read_text() == "mine"
    monkeypatch.undo()
    path = saved(tmp_path)
    assert victim.read_text() == "mine"
    assert not path.is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["victim", "f.plan", *planted])


def test_a_saved_file_has_the_mode_of_any_other(tmp_path):
    (tmp_path / "other").touch()
    path = saved(tmp_path)
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode
    path.write_bytes(b"old")
    assert tn.load(saved(tmp_path))(x, x)  # put in the place of what is there


def reseal(data, **changes):
    """A file with sections changed and its checksum right."""
    read = Sections(data)
    parts = {name: bytes(read.raw(name)) for name in read.names}
    for name, change in changes.items():
        parts[name] = change(parts[name])
    return pack(parts)


def test_a_plan_that_is_not_its_graphs_is_refused(tmp_path):
    """Kernels of a stranger are never compiled unless they are what this Tenfold makes."""
    path = saved(tmp_path)

    def swap(raw):
        data = msgpack.unpackb(raw)
        for kernel in data[-2]:
            for instruction in kernel[3]:
                if instruction[0] == "mul":
                    instruction[0] = "add"
        return msgpack.packb(data)

    path.write_bytes(reseal(path.read_bytes(), plan=swap))
    with pytest.raises(PlanError, match="not those of its graph"):
        tn.load(path)


def test_a_plan_of_other_versions_is_made_again(tmp_path):
    path = saved(tmp_path)

    def older(raw):
        about = msgpack.unpackb(raw)
        about["versions"]["tenfold"] = "0.0.1"
        return msgpack.packb(about)

    def fewer(raw):
        data = msgpack.unpackb(raw)
        data[4].append("a note of another planner")
        data[7][-1][10].append(len(data[4]) - 1)
        return msgpack.packb(data)

    path.write_bytes(reseal(path.read_bytes(), about=older, plan=fewer))
    plan = tn.load(path)
    assert "the plan was made again" in plan.notes[1]
    assert equal(plan(x, x), tn.jit(energy)(x, x))


def test_a_signature_that_does_not_fit_the_graph_is_refused(tmp_path):
    path = saved(tmp_path)
    original = path.read_bytes()
    for field, value in (
        ("leaves", ["f32[3,4]", "f32[3,5]"]),
        ("leaves", ["f32[3,4]"]),
        ("outputs", "*"),
        ("arguments", "[('tuple', 100000000000), '*', '*']"),
        ("arguments", "(" * 10_000),
        ("captures", ["w"]),
        ("weak", ["int", ""]),
        ("limits", [[7, "i8"]]),
        ("names", [["x"], "y"]),
        ("name", 3),
        ("parameters", [["x", 99, False], ["y", 1, False]]),
        ("hooks", [["h", True]]),
    ):

        def change(raw, field=field, value=value):
            return msgpack.packb({**msgpack.unpackb(raw), field: value})

        path.write_bytes(reseal(original, signature=change))
        with pytest.raises(PlanError):
            tn.load(path)


def test_mutated_files_are_refused_or_right(tmp_path):
    """A few hundred of what `tests/fuzz_files.py` does 200,000 times."""
    sys.path.insert(0, str(__import__("pathlib").Path(__file__).parents[1]))
    try:
        import fuzz_files
    finally:
        sys.path.pop(0)
    result = fuzz_files.run(1500, seed=3)
    assert result.refused + result.right == 1500
    assert result.refused > 1000


# Other processes.


def _called_elsewhere(plan, given, queue):
    queue.put((plan(given, given), "tenfold.backends.llvm.library" in sys.modules, plan.notes))


@native
def test_a_plan_is_sent_to_a_fresh_process():
    plan = tn.jit(energy).plan(x, x)
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_called_elsewhere, args=(plan, x, queue))
    process.start()
    results, imported, notes = queue.get(timeout=120)
    process.join()
    assert equal(results, plan(x, x))
    assert not imported
    assert notes == (f"code for {host_target().name} from the file",)


@native
def test_pickles_hold_the_bytes_of_the_file(tmp_path):
    weights = np.arange(20.0)
    plan = tn.jit(lambda x: x * weights).plan(weights)
    plan.save(tmp_path / "f.plan")
    data = (tmp_path / "f.plan").read_bytes()
    sent = pickle.dumps(plan)
    assert data in sent
    again = pickle.loads(sent)
    assert np.array_equal(again(weights), weights**2)
    assert pickle.loads(pickle.dumps(again)).to_bytes() == data


@native
def test_no_compiler_is_needed(tmp_path):
    """Neither llvmlite nor the source: only the file."""
    path = saved(tmp_path)
    script = f"""
        import sys
        sys.modules["llvmlite"] = None
        from importlib.machinery import PathFinder
        find = PathFinder.find_spec
        PathFinder.find_spec = lambda name, *a: None if name == "llvmlite" else find(name, *a)
        import numpy as np, tenfold as tn
        x = np.linspace(-1, 1, 12).reshape(3, 4).astype("float32")
        a = tn.load({str(path)!r}, trust_code=True)
        b = tn.load({str(path)!r})
        assert "evaluator" in b.notes[-1], b.notes
        for p, q in zip(a(x, x), b(x, x)):
            assert np.allclose(p, q, rtol=1e-5, atol=1e-6)
        print(a.notes[-1])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("from the file")


# Other processors.


@native
def test_the_target_that_fits_is_taken(tmp_path, monkeypatch):
    path = saved(tmp_path, targets=("x86-64-v2", "x86-64-v3"))
    want = tn.jit(energy)(x, x)
    host = host_target()
    if host.cpu not in ("x86-64-v3", "x86-64-v4"):
        pytest.skip("a machine of level v3 is needed")
    names = {one.target.name for one in PlanFile.read(path.read_bytes()).codes()}
    assert names == {"x86-64-v2", "x86-64-v3", host.name}

    def pretend(level):
        target = named(level, host)
        monkeypatch.setattr(code, "host_target", lambda: target)
        monkeypatch.setitem(
            registry._records, "cpu", dataclasses.replace(BACKEND, target=lambda: target)
        )

    for level in ("x86-64-v2", "x86-64-v3"):
        pretend(level)
        plan = tn.load(path, trust_code=True)
        assert plan.notes[-1] == f"code for {level} from the file"
        for got, wanted in zip(plan(x, x), want, strict=True):
            assert np.allclose(got, wanted, rtol=1e-5, atol=1e-6)
        assert "kernel" in plan.explain()
    pretend("x86-64")
    plan = tn.load(path, trust_code=True)
    assert any("it needs" in note for note in plan.notes)
    assert plan.notes[-1].startswith("kernels compiled here")


# Safetensors.


def test_arrays_go_through_safetensors(tmp_path):
    import ml_dtypes

    arrays = {
        "a": x,
        "b": np.arange(3, dtype="int16"),
        "c": np.array(True),
        "d": np.zeros((0, 3), "complex64"),
        "e": np.ones(4, ml_dtypes.bfloat16),
    }
    write_arrays(tmp_path / "a.safetensors", arrays)
    found = tn.load_safetensors(tmp_path / "a.safetensors")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array)


def test_damaged_safetensors_are_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    write_arrays(path, {"a": x, "b": np.ones(3, bool)})
    data = path.read_bytes()
    for length in range(0, len(data), 3):
        path.write_bytes(data[:length])
        with pytest.raises(FileError):
            tn.load_safetensors(path)
    draw = random.Random(1)
    begin = 8 + int.from_bytes(data[:8], "little")
    refused = 0
    for _ in range(300):  # in the header: it is refused, or says another thing that holds together
        wrong = bytearray(data)
        wrong[draw.randrange(begin)] = draw.randrange(256)
        path.write_bytes(wrong)
        try:
            found = tn.load_safetensors(path)
        except FileError:
            refused += 1
        else:
            assert sum(a.nbytes for a in found.values()) <= len(data) - begin
    assert refused > 200
    path.write_bytes(data[:-1] + b"\2")  # in the data: of all bytes only a bool may be wrong
    with pytest.raises(FileError, match="truth value"):
        tn.load_safetensors(path)


def array_at(start, end, shape=None):
    shape = [end - start] if shape is None else shape
    return {"dtype": "U8", "shape": shape, "data_offsets": [start, end]}


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ({f"a{n}": array_at(0, 9) for n in range(3)}, "overlap"),
        ({"a": array_at(0, 9), "b": array_at(8, 10)}, "overlap"),
        ('{"a": %s, "a": %s}' % ((json.dumps(array_at(0, 1)),) * 2), "twice"),
        ({"a": array_at(0, 0, [0, 1 << 63])}, "dimension"),
        ({"a": array_at(0, 0, [1 << 32, 1 << 32])}, "within"),
        ({"a": array_at(0, 0, [1 << 100, 0])}, "dimension"),
        ({"a": array_at(0, 1, [1] * 100)}, "dimension"),
        ({"a": array_at(4, 0, [-4])}, "no number"),
        ({"a": array_at(11, 11)}, "within"),
        ([1], "items"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_hostile_safetensors_are_refused(tmp_path, header, why):
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(10))
    with pytest.raises(FileError, match=why):
        tn.load_safetensors(path)


def test_a_file_larger_than_a_plan_is_not_read(tmp_path):
    path = tmp_path / "f.plan"
    with open(path, "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(PlanError, match="larger than a plan"):
        tn.load(path)


def overwrite(x, y):
    x *= 2
    return (x + y).sum()


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("made", [(), "x"])
def test_a_loaded_plan_updates_its_arguments(tmp_path, trusted, made):
    """Whether it was made with them donated or not, and is loaded so or not."""
    path, y = tmp_path / "f.plan", np.ones(1000)
    jitted = tn.jit(overwrite, donate=made)
    jitted.plan(y, y).save(path)
    assert "updates in place: x" in tn.load(path, trust_code=trusted).explain()
    for donate in ((), "x", 0, ["x"], ("x", "y")):
        given = tn.load(path, trust_code=trusted, donate=donate)
        x = np.ones(1000)
        for value in (3000, 5000, 9000):
            assert given(x, y) == value
        assert (x == 8).all()
        assert given(x, y=y) == 17000
        with pytest.raises(tn.TenfoldError, match="shares memory with the argument 'y'"):
            given(x, x)
    with pytest.raises(tn.TenfoldError, match="donate='z' names no parameter"):
        tn.load(path, trust_code=trusted, donate="z")


@pytest.mark.parametrize("trusted", [False, True])
def test_a_loaded_plan_keeps_what_a_donated_plan_only_computes_in(tmp_path, trusted):
    """The plan works in the memory of its argument, and native code answers."""
    path = tmp_path / "f.plan"

    def sums(x, i):
        x = x.copy()
        np.add.at(x, i, 1.0)
        return x[:2] * 1.0

    x, i = np.zeros(5000), np.array([0, 0, 1])
    tn.jit(sums, donate="x").plan(x, i).save(path)
    loaded = tn.load(path, trust_code=trusted)
    for _ in range(3):
        assert loaded(x, i).tolist() == [2, 1]
        assert not x.any()
    revived = pickle.loads(pickle.dumps(loaded))
    for _ in range(3):
        assert revived(x, i).tolist() == [2, 1]
        assert not x.any()


def test_a_file_may_not_have_captured_arrays_written_into(tmp_path):
    from tenfold.api.load import Loaded
    from tenfold.backends.cpu.run.compiled import CompiledProgram

    w = np.ones(50)
    plan = tn.jit(lambda x: np.sqrt(x) * w).plan(w * 1)
    program = CompiledProgram(BACKEND.plan(plan.graph, donated=(1,)))
    made = Loaded(
        plan.signature,
        lambda: program,
        lambda: plan.graph,
        callbacks=plan._callbacks,
        captures=plan._captures,
        donated=(0, 1),
    )
    with pytest.raises(tn.TenfoldError, match="captured arrays"):
        made(w * 1)
