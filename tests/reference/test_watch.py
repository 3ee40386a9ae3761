"""Values watched: format, choice, files, a reused node once, limit, silent when off."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import tenfold as tn
from tenfold import trace_values

LINE = Path(__file__).name


def program(x: tn.Array) -> tn.Array:
    y = np.sqrt(x)
    return y * y + y


def loop(x: tn.Array) -> tn.Array:
    return tn.fori_loop(0, 3, lambda i, s: s * 2, x)


def test_every_node_once_however_often_it_is_used() -> None:
    values = trace_values(program, np.array([4.0, 9.0]))
    assert [(r.name, r.op) for r in values] == [("%1", "sqrt"), ("%2", "mul"), ("%3", "add")]
    assert values["%1"].value.tolist() == [2, 3]
    assert values.outputs[0].tolist() == [6, 12]


def test_the_format() -> None:
    lines = str(trace_values(program, np.array([4.0, 9.0]), ops="mul")).splitlines()
    where = f"{__file__}:{program.__code__.co_firstlineno + 2}, in program"
    assert lines == [f"%2 = mul : f64[2]  # {where}", "  [4., 9.]"]


def test_the_limit_counts_elements() -> None:
    values = trace_values(np.negative, np.arange(100.0).reshape(10, 10), limit=3)
    assert str(values).endswith("  [-0., -1., -2., … 97 more]")
    assert str(trace_values(np.negative, np.arange(100.0), limit=0)).endswith("[… 100]")
    assert str(trace_values(np.negative, np.float64(1), limit=3)).endswith("  -1.")
    with pytest.raises(tn.TenfoldError, match="limit"):
        trace_values(np.negative, np.arange(3.0), limit=-1)


def test_printing_goes_where_it_is_told_and_nowhere_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = io.StringIO()
    values = trace_values(program, np.array([4.0]), file=out)
    assert out.getvalue() == f"{values}\n"
    tn.jit(program)(np.array([4.0]))
    assert capsys.readouterr().out == ""


def test_loops_by_iteration() -> None:
    values = trace_values(loop, np.array([1.0]), ops="mul")
    names = [record.name for record in values]
    assert len(names) == 3
    assert [n.partition("[")[2][:1] for n in names] == ["0", "1", "2"]
    assert [float(record.value[0]) for record in values] == [2, 4, 8]


def test_a_round_a_branch_and_a_condition_have_names() -> None:
    def nested(x: tn.Array) -> object:
        return tn.while_loop(
            lambda s: s.sum() < 4,
            lambda s: tn.cond(s[0] > 1, lambda: s + 1, lambda: s * 3),
            x,
        )

    values = trace_values(nested, np.array([1.0]))
    names = [record.name for record in values]
    (top,) = [n for n in names if "." not in n]
    assert any(n.startswith(f"{top}.cond[0].%") for n in names)
    branches = [n.rpartition(".%")[0] for n in names if "branch" in n]
    assert [b.rpartition(".")[2] for b in dict.fromkeys(branches)] == ["branch0", "branch1"]
    chosen = trace_values(nested, np.array([1.0]), names=f"{top}[1]")
    assert {n.name.partition(".")[0] for n in chosen} == {f"{top}[1]"}
    assert len(chosen) == len([n for n in names if n.startswith(f"{top}[1].")])


def test_chosen_by_position_name_line_function_and_custom_name() -> None:
    x = np.array([4.0])
    ops = lambda **choice: [r.op for r in trace_values(program, x, **choice)]  # noqa: E731
    assert ops(positions=0) == ["sqrt"]
    assert ops(positions=(0, 2)) == ["sqrt", "add"]
    assert ops(names="%2") == ["mul"]
    assert ops(names=["%2"], ops={"add"}) == ["mul", "add"]
    assert ops(names=f"{LINE}:{program.__code__.co_firstlineno + 1}") == ["sqrt"]
    assert ops(names="program") == ["sqrt", "mul", "add"]
    assert ops(names=()) == []
    mine = tn.custom("mine", lambda v: v + 1)
    assert [r.op for r in trace_values(mine, x, names="mine")] == ["custom"]


def test_one_file_a_node(tmp_path: Path) -> None:
    x = np.array([4.0, 9.0])
    values = trace_values(program, x, directory=tmp_path / "values")
    files = sorted((tmp_path / "values").iterdir())
    assert [f.name for f in files] == ["000000.1.sqrt.npy", "000001.2.mul.npy", "000002.3.add.npy"]
    assert [r.file for r in values] == files
    assert np.load(files[0]).tolist() == [2, 3]
    assert values["%3"].value.tolist() == [6, 12]
    trace_values(loop, x, directory=tmp_path / "loop", ops="mul")
    assert len(list((tmp_path / "loop").iterdir())) == 3


def test_a_node_of_several_values_and_a_dtype_that_files_do_not_know(tmp_path: Path) -> None:
    values = trace_values(np.linalg.qr, np.eye(2), directory=tmp_path, ops="qr")
    q, r = values[0].value
    assert np.allclose(q @ r, np.eye(2))
    assert [f.suffix for f in tmp_path.iterdir()] == [".npz"]
    assert len(str(values).splitlines()) == 5
    narrow = np.ones(2, tn.spec((), "bfloat16").dtype)
    saved = trace_values(np.negative, narrow, directory=tmp_path)
    assert saved[0].value.dtype == narrow.dtype
    assert saved[0].value.tolist() == [-1, -1]


def test_a_graph_may_be_given() -> None:
    graph = tn.trace(program, tn.spec((1,), "float64"))
    assert trace_values(graph, np.array([4.0]))["%3"].value.tolist() == [6]


def test_a_watched_value_is_a_copy() -> None:
    x = np.arange(4.0)
    values = trace_values(lambda v: v.reshape(2, 2), x)
    x[:] = 0
    assert values[0].value.tolist() == [[0, 1], [2, 3]]
    with pytest.raises(KeyError):
        values["%9"]
