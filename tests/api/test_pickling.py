"""Pickle, copy and pools: jitted functions travel by name, and what belongs to them travels too."""

from __future__ import annotations

import copy
import functools
import pickle
import pickletools
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import errors
from tenfold.errors import TenfoldError
from tenfold.parity.certificate import Certificate

X = np.arange(4.0)
W = np.linspace(1.0, 2.0, 1000)


@tn.jit
def decorated(x: Any) -> Any:
    return x * 2 + W[0]


def plain(x: Any, n: int) -> Any:
    return x * n


named = tn.jit(plain, static="n", strict=True)
strict = tn.jit(decorated, strict=True)
part = tn.jit(functools.partial(plain, n=3), static="n")
of_numpy = tn.jit(np.sin)
mapped = tn.jit(tn.vmap(plain, in_axes=(0, None)))
listed = [
    tn.jit(plain, static="n", strict=True),
    tn.jit(decorated, strict=True),
    tn.jit(functools.partial(plain, n=3), static="n"),
    tn.jit(np.sin),
    decorated.on("cpu"),
]


class Scale:
    def __init__(self, by: float) -> None:
        self.by = by
        self.own = tn.jit(self.plainly)

    @tn.jit
    def scaled(self, x: Any) -> Any:
        return x * self.by

    @tn.jit
    @classmethod
    def of_class(cls, x: Any) -> Any:
        return x + len(cls.__name__)

    @tn.jit
    @staticmethod
    def alone(x: Any) -> Any:
        return x + 1

    def plainly(self, x: Any) -> Any:
        return x - self.by

    def __call__(self, x: Any) -> Any:
        return x + self.by


def again(given: Any, protocol: int = pickle.HIGHEST_PROTOCOL) -> Any:
    return pickle.loads(pickle.dumps(given, protocol))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_function_travels_by_its_name(protocol: int) -> None:
    decorated(X)
    assert again(decorated, protocol) is decorated
    assert again([decorated, decorated], protocol) == [decorated, decorated]
    assert again(Scale.scaled, protocol) is Scale.scaled
    assert again(Scale.alone, protocol) is Scale.alone


def test_neither_code_nor_arrays_are_in_it() -> None:
    decorated(X)
    sent = pickle.dumps(decorated)
    assert len(sent) < 100
    texts = [arg for _, arg, _ in pickletools.genops(sent) if isinstance(arg, (str, bytes))]
    assert texts == [__name__, "decorated"]
    assert len(pickle.dumps(listed[0])) < 500


@pytest.mark.parametrize("name", ["named", "strict", "part", "of_numpy", "mapped"])
def test_a_function_of_another_name_travels_by_its_own(name: str) -> None:
    function = globals()[name]
    assert again(function) is function
    assert len(pickle.dumps(function)) < 200


@pytest.mark.parametrize("number", range(len(listed)))
def test_options_travel_with_the_plain_function_where_it_has_no_name(number: int) -> None:
    function = listed[number]
    made = again(function)
    assert made is not function
    assert made.options == function.options
    args = (X, 3) if number == 0 else (X,)
    np.testing.assert_array_equal(made(*args), function(*args))


def test_methods_travel_with_their_object() -> None:
    one = Scale(3.0)
    assert one.scaled(X).tolist() == [0, 3, 6, 9]
    assert one.own(X).tolist() == [-3, -2, -1, 0]
    other = again(one)
    other.by = 5.0
    assert other.scaled(X).tolist() == [0, 5, 10, 15]
    assert other.own(X).tolist() == [-5, -4, -3, -2]
    method = again(one.scaled)
    assert method.__wrapped__.__self__ is not one
    assert method(X).tolist() == [0, 3, 6, 9]
    assert again(Scale.of_class) is Scale.of_class
    assert again(one.of_class) is Scale.of_class
    assert again(tn.jit(one))(X).tolist() == [3, 4, 5, 6]


def test_copies_are_the_function_itself() -> None:
    local = tn.jit(lambda x: x + 1)
    for function in (decorated, named, local, of_numpy):
        assert copy.copy(function) is function
        assert copy.deepcopy(function) is function


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_the_copy_of_an_object_has_its_own_methods(how: Any) -> None:
    one = Scale(3.0)
    one.scaled(X)
    other = how(one)
    other.by = 5.0
    for _ in range(3):
        assert other.scaled(X).tolist() == [0, 5, 10, 15]
        assert one.scaled(X).tolist() == [0, 3, 6, 9]
    deep = copy.deepcopy(one)
    deep.by = 7.0
    assert deep.own(X).tolist() == [-7, -6, -5, -4]
    assert copy.deepcopy(deep.scaled)(X).tolist() == [0, 7, 14, 21]


def test_what_no_name_leads_to_has_a_remedy() -> None:
    def local(x: Any) -> Any:
        return x

    for function in (local, lambda x: x):
        with pytest.raises((pickle.PicklingError, AttributeError)) as said:
            pickle.dumps(function)
        with pytest.raises(pickle.PicklingError, match="at the top of a module") as caught:
            pickle.dumps(tn.jit(function))
        assert caught.value.message == str(said.value)


def test_plans_types_options_certificates_and_lazy_arrays() -> None:
    plan = again(decorated.plan(X))
    np.testing.assert_array_equal(plan(X), decorated(X))
    np.testing.assert_array_equal(copy.deepcopy(plan)(X), decorated(X))
    assert again(tn.spec((3, 4), "float32")) == tn.spec((3, 4), "float32")
    assert again(named.options) == named.options
    f = tn.jit(lambda x: x * 2)
    f(X)
    found = f.certificate(X)
    assert isinstance(found, Certificate)
    assert again(found) == found
    lazy = again(tn.asarray(X) + 1)
    assert isinstance(lazy, tn.Array)
    assert lazy.tolist() == [1, 2, 3, 4]
    with pytest.raises(TenfoldError, match="can't be pickled"):
        tn.jit(lambda x: pickle.dumps(x))(X)


def subclasses(kind: type[Any]) -> list[type[Any]]:
    return [kind, *(one for below in kind.__subclasses__() for one in subclasses(below))]


@pytest.mark.parametrize("kind", subclasses(TenfoldError), ids=lambda kind: kind.__name__)
def test_errors_travel_whole(kind: type[TenfoldError]) -> None:
    error = kind("what", fix="a fix", where="model.py:1").of("x, f64[4]")
    error.add_note("a note")
    made = again(error)
    assert type(made) is kind
    assert str(made) == str(error)
    assert (made.message, made.fix, made.where, made.array) == (
        "what",
        "a fix",
        "model.py:1",
        "x, f64[4]",
    )
    assert made.__notes__ == ["a note"]


def test_the_errors_of_the_package_are_among_them() -> None:
    kinds = {
        k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, TenfoldError)
    }
    assert kinds <= set(subclasses(TenfoldError))


MODULE = """
    import numpy as np, tenfold as tn

    W = np.arange(100.0)

    @tn.jit
    def total(x):
        return (x * W[:4]).sum()

    def power(x, n):
        return x ** n

    squared = tn.jit(power, static="n")

    @tn.jit
    def failing(x):
        return x[7]

    class Model:
        def __init__(self, k):
            self.k = k

        @tn.jit
        def scaled(self, x):
            return x * self.k
"""

USE = """
    import functools, multiprocessing as mp, pickle, sys
    from concurrent.futures import ProcessPoolExecutor
    import numpy as np
    import tenfold as tn
    MODULE

    def main(method):
        rows = [np.full(4, float(n)) for n in range(3)]
        model = Model(3.0)
        expected = [float(total(row)) for row in rows]
        tripled = [model.scaled(row).tolist() for row in rows]
        context = mp.get_context(method)
        with context.Pool(2) as pool:
            assert [float(v) for v in pool.map(total, rows)] == expected
            assert [v.tolist() for v in pool.map(model.scaled, rows)] == tripled
            cubes = pool.map(functools.partial(squared, n=3), rows)
            assert [v.tolist() for v in cubes] == [(row**3).tolist() for row in rows]
            try:
                pool.map(failing, rows)
            except IndexError as error:
                assert type(error).__name__ == "IndexProblem", type(error)
                assert error.array == "x, f64[4]", error.array
                assert "return x[7]" in str(error), error
            else:
                raise AssertionError("no error came back")
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            assert [float(v) for v in pool.map(total, rows)] == expected
        print("done")

    if __name__ == "__main__":
        main(sys.argv[1])
"""


def run(folder: Path, script: str, *args: str) -> str:
    (folder / "script.py").write_text(textwrap.dedent(script))
    command = [sys.executable, "-W", "ignore", "script.py", *args]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("method", "where"),
    [
        ("fork", "the script"),
        ("forkserver", "a module"),
        ("spawn", "a module"),
        ("spawn", "the script"),
    ],
)
def test_pools(method: str, where: str, tmp_path: Path) -> None:
    if where == "a module":
        (tmp_path / "model.py").write_text(textwrap.dedent(MODULE))
    given = MODULE if where == "the script" else "    from model import *\n"
    assert run(tmp_path, USE.replace("    MODULE", given), method) == "done\n"


CLOUD = """
    import numpy as np, tenfold as tn, sys
    MODULE

    def main():
        add = 5.0
        local = tn.jit(lambda x: x + add)
        rows = [np.full(4, float(n)) for n in range(3)]
        USE
        print("done")

    if __name__ == "__main__":
        main()
"""


def test_cloudpickle(tmp_path: Path) -> None:
    """What it writes down for a process that has no such `__main__`."""
    pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")
    use = """
        import cloudpickle, pickle, subprocess
        sent = cloudpickle.dumps([local, total, squared, Model(3.0).scaled])
        code = (
            "import pickle, sys, numpy as np\\n"
            "local, total, squared, scaled = pickle.loads(sys.stdin.buffer.read())\\n"
            "x = np.ones(4)\\n"
            "print(local(x)[0], total(x), squared(2 * x, 3)[0], scaled(x)[0])\\n"
        )
        done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True)
        assert done.stdout.decode() == "6.0 6.0 8.0 3.0\\n", done.stderr.decode()
        """
    script = CLOUD.replace("    MODULE", MODULE).replace("        USE", use)
    assert run(tmp_path, script) == "done\n"


def test_joblib(tmp_path: Path) -> None:
    pytest.importorskip("joblib", reason="joblib is not installed")
    use = """
        from joblib import Parallel, delayed
        with Parallel(n_jobs=2) as parallel:
            assert parallel(delayed(total)(row) for row in rows) == [total(row) for row in rows]
            given = parallel(delayed(local)(row) for row in rows)
            assert [v[0] for v in given] == [5.0, 6.0, 7.0]
            scaled = Model(3.0).scaled
            assert [v[0] for v in parallel(delayed(scaled)(row) for row in rows)] == [0, 3, 6]
        """
    script = CLOUD.replace("    MODULE", MODULE).replace("        USE", use)
    assert run(tmp_path, script) == "done\n"
