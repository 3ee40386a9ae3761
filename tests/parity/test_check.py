"""Checks of new plans: what is certified, what is left out and said, and what callers see."""

import sys
import warnings
from datetime import UTC, datetime
from typing import Any

import msgpack
import numpy as np
import pytest
from faults import plant
from fresh import forget_code

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.target import host_target
from tenfold.cache import plans
from tenfold.errors import FileError
from tenfold.parity import check as checks
from tenfold.parity.certificate import Certificate, verdict_from_data, verdict_to_data
from tenfold.parity.check import check, digest_of
from tenfold.parity.replay.guards import try_arguments
from tenfold.parity.replay.perturb import farther
from tenfold.parity.rule import judge
from tenfold.parity.rule.agree import compare

X = np.random.default_rng(3).normal(size=(12, 7)).astype("f4")


@pytest.fixture(autouse=True)
def _fresh():
    plans.clear()


def program_of(function, *args):
    graph = tn.trace(function, *args)
    return BACKEND.compile(graph), graph


def test_a_certificate_tells_what_was_checked():
    f = tn.jit(lambda x: np.exp(x).sum(0))
    assert f.certificate(X) is None
    first = f(X)
    made = f.certificate(X)
    assert made.complete
    assert made.inputs == ("f32[12,7]",)
    assert made.checked == len(made.steps) == 1
    assert made.graph == f.trace(X).digest
    assert made.guards > 3
    assert made.ulp == max(step.ulp for step in made.steps) < 8
    assert made.inputs_digest == digest_of([X])
    assert host_target().cpu in made.target
    assert datetime.fromisoformat(made.date) <= datetime.now(UTC)
    assert len(made.end_to_end) == 1
    assert dict(made.versions)["numpy"] == np.__version__
    assert made.state == "whole"
    assert "nothing left" in str(made)
    assert len(made.kernels) == 1
    np.testing.assert_array_equal(f(X), first)  # the plan answered at once: the same bits


def test_a_certificate_is_plain_data():
    f = tn.jit(lambda x: tn.scan(lambda c, r: (c + r, c), x[0], x))
    f(X)
    made = f.certificate(X)
    packed = msgpack.packb(made.to_data())
    assert Certificate.from_data(msgpack.unpackb(packed)) == made
    whole = msgpack.unpackb(msgpack.packb(verdict_to_data(made, None)))
    assert verdict_from_data(whole) == (made, None)
    assert verdict_from_data(verdict_to_data(None, "wrong")) == (None, "wrong")
    with pytest.raises(FileError):
        Certificate.from_data({"version": 1})
    with pytest.raises(FileError, match="version"):
        Certificate.from_data({**made.to_data(), "version": 99})


def test_loops_are_checked_at_both_ends_and_between():
    def f(x):
        return tn.scan(lambda c, i: (np.sin(c) + i, c.sum()), x[0], np.arange(100, dtype="f4"))

    program, graph = program_of(f, X)
    captures = [np.arange(100, dtype="f4")][: len(graph.parameters) - 1]
    made = check(program, graph, [X, *captures]).verdict
    assert isinstance(made, Certificate)
    (loop,) = made.loops
    assert loop.rounds == 100
    assert loop.checked == 9  # 0, 1, 2, 4, …, 64 and the last
    every = check(program, graph, [X, *captures], every=True).verdict
    assert every.loops[0].checked == 100


def test_a_branch_not_taken_is_tried_on_what_it_would_have_had():
    def f(x, n):
        return tn.switch(n, [lambda v: v * 2, lambda v: np.exp(v), lambda v: v - 1], x)

    g = tn.jit(f)
    g(X, 1)
    made = g.certificate(X, 1)
    assert made.complete
    assert len({(s.plan, s.step) for s in made.steps}) == 4  # the branch, and a step in each
    plans.clear()
    with plant("operands", "sub"), pytest.warns(tn.ParityWarning, match="disagrees"):
        np.testing.assert_array_equal(tn.jit(f)(X, 1), np.exp(X))


def test_the_body_of_a_loop_of_no_rounds_is_tried():
    def f(x, n):
        return tn.while_loop(lambda v: v[1] < n, lambda v: (v[0] * 2 - 1, v[1] + 1), (x, 0))[0]

    g = tn.jit(f)
    np.testing.assert_array_equal(g(X, 0), X)
    assert g.certificate(X, 0).complete


@pytest.mark.parametrize("reverse", [False, True])
def test_the_body_of_a_scan_of_no_rounds_is_tried(reverse):
    def f(x):
        return tn.scan(lambda c, v: (c + v.sum(), np.sin(v)), 0.0, x, reverse=reverse)

    empty = np.zeros((0, 3))
    program, graph = program_of(f, empty)
    found = check(program, graph, [empty]).verdict
    assert found.complete, found.left
    with plant("instruction", "sin>cos"):
        program, graph = program_of(f, empty)
    assert not check(program, graph, [empty]).agrees


def test_callbacks_run_once_and_in_order():
    seen = []

    def body_of(c, r):
        tn.hook("inside", r.sum(), lambda v: seen.append("inside"))
        return c + r, c.sum()

    f = tn.jit(lambda x: tn.scan(body_of, x[0], tn.hook("before", x, lambda v: seen.append("b"))),
               )  # fmt: skip
    f(X)
    assert seen == ["b"] + ["inside"] * len(X)
    assert f.certificate(X) is not None
    seen.clear()
    f(X)
    assert seen == ["b"] + ["inside"] * len(X)


def test_what_is_left_is_said_and_callbacks_still_run_once(monkeypatch):
    from tenfold.api import checking

    monkeypatch.setattr(checking, "WAITING", -1)  # no background
    seen = []

    def f(x):
        first = tn.hook("a", x * 2, lambda v: seen.append("a"))
        for _ in range(20):
            first = np.sin(first) + 1.8125  # no other test has this kernel judged
        return tn.hook("b", first, lambda v: seen.append("b"))

    g = tn.jit(f, verify=0.0)
    g(X)
    assert seen == ["a", "b"]
    made = g.certificate(X)
    assert made.state == "partial"
    assert made.checked == 0
    assert made.end_to_end == ()
    assert any("steps" in what for what in made.left)
    assert any("drawn values" in what for what in made.left)
    assert "left: the outputs of the whole plan" in str(made)


def test_a_later_call_goes_on_where_callbacks_keep_the_background_out():
    seen = []
    f = tn.jit(lambda x: tn.hook("a", np.sin(x) * 2, seen.append) + 1, verify=0.0)
    f(X)
    assert f.certificate(X).state == "partial"
    assert f.ready(600)  # kernels are tried on drawn values in the background
    assert "certificate: partial, left: " in f.plan(X).explain()
    g = tn.jit(f, verify=600.0)  # the same plan
    for _ in range(2):
        g(X)
    assert f.certificate(X).state == "whole"
    assert len(seen) == 3


def test_a_plan_from_disk_that_is_not_checked_to_the_end_answers_at_once(monkeypatch, tmp_path):
    from tenfold.api import checking

    forget_code(monkeypatch)  # what is compiled is written to disk at once
    monkeypatch.setattr(tn.config, "cache", tmp_path)

    def f(x):
        return np.sort(np.sin(x) * 2, axis=0)

    g = tn.jit(f, verify=0.0)
    monkeypatch.setattr(checking, "WAITING", -1)  # no background
    g(X)
    assert g.certificate(X).state == "partial"
    plans.clear()
    h = tn.jit(f, verify=0.0)
    before = tn.stats()["plans"]
    h(X)
    assert tn.stats()["plans"] == before  # nothing was planned in the call
    monkeypatch.setattr(checking, "WAITING", 32)
    h(X)
    assert h.ready(600)
    assert h.certificate(X).state == "whole"


def test_arguments_too_large_to_copy_are_checked_by_later_calls(monkeypatch):
    from tenfold.api import checking

    monkeypatch.setattr(checking, "COPIED", 0)
    f = tn.jit(lambda x: np.sort(np.sin(x), axis=0) * 2, verify=0.0)
    f(X)
    assert f.ready(600)
    made = f.certificate(X)
    assert not made.undrawn  # the background needs no arguments for these
    assert made.left
    g = tn.jit(f, verify=600.0)
    for _ in range(2):
        g(X)
    assert g.certificate(X).state == "whole"


def test_the_rest_is_checked_in_the_background():
    def f(x):
        return tn.scan(lambda c, r: (np.sin(c) + r, np.sort(c)), x[0], x)

    g = tn.jit(f, verify=0.0)
    first = g(X)
    assert g.ready(600)
    made = g.certificate(X)
    assert made.state == "whole"
    assert g.plan(X).explain().endswith("certificate: whole")
    for a, b in zip(g(X), first, strict=True):
        np.testing.assert_array_equal(a, b)  # the plan has answered from the start


def test_a_plan_that_is_refuted_later_is_taken_out_of_use():
    def f(x):
        return np.exp(x) * 2

    with plant("instruction", "exp>exp2"):
        g = tn.jit(f, verify=0.0)
        x = X.copy()
        assert not np.array_equal(g(x), f(x))  # partial: it answers
        assert g.ready(600)
        with pytest.warns(tn.ParityWarning, match="it had answered [1-9]"):
            np.testing.assert_array_equal(g(x), f(x))
        np.testing.assert_array_equal(g(x), f(x))  # without another word


def test_in_strict_mode_the_reference_answers_until_nothing_is_left():
    def risky(v):
        return tn.hook("never", v * 2, lambda v: None)

    def f(x, n):
        return tn.cond(n > 0, lambda v: v * 3 - 1, risky, x)

    g = tn.jit(f, strict=True)
    with pytest.warns(tn.ParityWarning, match="partial"):
        g(X, 1)
    made = g.certificate(X, 1)
    assert made.state == "partial"
    assert made.unreached
    g(X, 1)
    g(X, 0)
    assert g.certificate(X, 1).state == "whole"


def test_what_is_first_reached_later_is_judged_then():
    def odd(v):
        return tn.hook("odd", v * 2, lambda v: None) - 1

    def f(x, n):
        return tn.cond(n > 0, lambda v: v * 3, odd, x)

    g = tn.jit(f)
    for _ in range(3):
        g(X, 1)
    assert g.certificate(X, 1).state == "partial"
    g(X, 0)  # it comes to what was not checked
    g(X, 0)
    assert g.certificate(X, 1).state == "whole"


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tn.while_loop(lambda c: c[0], lambda c: (c[1].sum() < 9, c[1] + 1), (True, x)),
        lambda x: tn.while_loop(lambda c: c[0], lambda c: (c[1].sum() < 9, c[1] + 1), (False, x)),
        lambda x: tn.scan(lambda c, row: (row, c), x[0], x),
        lambda x: tn.scan(lambda c, row: (row, c), x[0], x, reverse=True),
        lambda x: tn.fori_loop(0, 7, lambda i, c: (c[1], c[0]), (x, x * 2)),
    ],
)
def test_scopes_without_nodes_are_checked_too(function):
    """The reference shows them to nobody; left out, every call would go on with the check."""
    program, graph = program_of(function, X)
    found = check(program, graph, [X])
    assert found.agrees
    assert found.verdict.complete


def test_a_branch_of_a_late_round_is_judged_when_it_is_met():
    def f(x):
        def seldom(v):
            return tn.hook("seldom", v * 2, lambda v: None)

        return tn.fori_loop(0, 20, lambda i, v: tn.cond(i == 5, seldom, lambda v: v + 1, v), x)

    g = tn.jit(f, verify=60.0)
    g(X)
    assert g.certificate(X).complete


def test_what_no_check_comes_to_is_looked_for_less_and_less_often(monkeypatch):
    def f(x):
        def seldom(v):
            return tn.hook("seldom", v * 2, lambda v: None)

        return tn.fori_loop(0, 20, lambda i, v: tn.cond(i == 5, seldom, lambda v: v + 1, v), x)

    walk = sys.modules["tenfold.parity.replay.walk"].Walk
    monkeypatch.setattr(walk, "unknown", lambda self, about: False)
    g = tn.jit(f, verify=60.0)
    before = tn.stats()["checks"]
    for _ in range(64):
        g(X)
    assert g.certificate(X).state == "partial"
    assert tn.stats()["checks"] - before <= 16


def test_a_check_that_finds_no_memory_gives_up(monkeypatch):
    def none(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr(sys.modules["tenfold.parity.replay.walk"], "Frame", none)
    f = tn.jit(lambda x: np.sqrt(x * x) + 1)
    np.testing.assert_allclose(f(X), np.abs(X) + 1, rtol=1e-6)
    assert f.certificate(X).state == "partial"


def test_donation_waits_until_after_the_check():
    def step(x, y):
        x *= 2
        x[0] = y
        return x.sum(), x

    before, total = X.copy(), X * 2
    total[0] = 1
    f = tn.jit(step, donate="x")
    given = X.copy()
    got, made = f(given, np.float32(1))
    np.testing.assert_array_equal(made, total)
    np.testing.assert_allclose(got, total.sum(), rtol=1e-5)
    assert f.certificate(X, np.float32(1)).inputs_digest == digest_of([before, np.float32(1)])
    plans.clear()
    g = tn.jit(step, donate="x")
    given = X.copy()
    with plant("instruction", "mul>add"), pytest.warns(tn.ParityWarning):
        _, made = g(given, np.float32(1))
    np.testing.assert_array_equal(made, total)  # the reference's, of what was given
    np.testing.assert_array_equal(given, total)


def test_a_raising_callback_is_the_callers():
    f = tn.jit(lambda x: tn.hook("h", x * 2, lambda v: 1 / 0) + 1)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            f(X)
    assert f.certificate(X) is None
    f.with_hooks({"h": None})(X)
    assert f.certificate(X) is not None


def test_always_and_off(monkeypatch):
    calls = []
    module = sys.modules["tenfold.parity.check"]
    real = module.check
    monkeypatch.setattr(module, "check", lambda *a, **k: calls.append(1) or real(*a, **k))
    f = tn.jit(lambda x: x * 3 + 1, verify="always")
    for _ in range(3):
        f(X)
    assert len(calls) == 3
    plans.clear()
    g = tn.jit(lambda x: x * 3 + 1, verify="off")
    g(X)
    assert len(calls) == 3
    assert g.certificate(X) is None
    for wrong in ("sometimes", -1, True):
        with pytest.raises(tn.TenfoldError, match="no way to check"):
            tn.jit(lambda x: x, verify=wrong)


def test_the_environment_sets_the_default(monkeypatch):
    monkeypatch.setenv("TENFOLD_VERIFY", "off")
    f = tn.jit(lambda x: x * 5)
    f(X)
    assert f.certificate(X) is None
    monkeypatch.setenv("TENFOLD_VERIFY", "2.5")
    f(X.copy()[:3])
    assert f.certificate(X[:3]) is not None


def test_near_ties_are_listed():
    x = np.linspace(-20, 20, 5000).astype("f4")
    edge = np.exp(x)  # the reference says it is never above; compiled, an ulp may tip it
    program, graph = program_of(lambda x, e: np.exp(x) > e, x, edge)
    found = check(program, graph, [x, edge])
    assert found.agrees
    differs = (np.asarray(program([x, edge])[0]) != found.outputs[0]).sum()
    assert sum(step.ties for step in found.verdict.steps) == differs
    assert bool(found.verdict.near_ties) == bool(differs)


def test_large_steps_are_judged_on_a_sample_that_is_stated():
    x = np.random.default_rng(0).normal(size=300_000).astype("f4")
    program, graph = program_of(lambda x: np.tanh(x) * np.exp(x), x)
    found = check(program, graph, [x], limit=None).verdict
    assert isinstance(found, Certificate)
    assert any("of 300000 elements judged" in note for note in found.notes)


def test_rows_that_read_much_are_judged_on_some_of_them(monkeypatch):
    monkeypatch.setattr(judge, "READ", 1 << 12)
    a, b = (np.random.default_rng(n).normal(size=(300, 200)) for n in (1, 2))
    weighted = lambda a, b: (a * np.exp(b)).sum(axis=1)  # noqa: E731
    program, graph = program_of(weighted, a, b)
    found = check(program, graph, [a, b], limit=None).verdict
    assert found.complete
    assert any("of 300 elements judged" in note for note in found.notes)
    with plant("instruction", "mul>add"):
        program, graph = program_of(weighted, a, b)
        assert not check(program, graph, [a, b], limit=None).agrees


def test_the_reference_is_not_begun_where_the_time_is_up(monkeypatch):
    def twice(x):
        x = x * 2.0
        x[3] = x[4] + 1.0
        x[3] = np.sqrt(x[3])  # written over: the plan's graph is another one
        return x

    program, graph = program_of(twice, np.arange(200.0))
    program.judged = set()
    begun = []
    evaluate = checks.evaluate
    monkeypatch.setattr(checks, "evaluate", lambda *given: begun.append(1) or evaluate(*given))
    monkeypatch.setattr(checks, "PACE", 1 << 60)  # no kernel is too large: the first is judged
    found = check(program, graph, [np.arange(200.0)], limit=1e-9).verdict
    assert not found.complete
    assert not begun
    monkeypatch.setattr(checks, "_EACH", 1 << 60)  # nor where it would take longer than there is
    assert not check(program, graph, [np.arange(200.0)], limit=1e3).verdict.complete
    assert not begun
    assert check(program, graph, [np.arange(200.0)], limit=None, before=found).verdict.complete
    assert begun


def test_what_would_take_too_long_is_left_but_for_a_glance(monkeypatch):
    """No time is measured: at this pace anything takes too long."""
    monkeypatch.setattr(checks, "_STEPPED", 1e-6)
    monkeypatch.setattr(checks, "PACE", 0)

    def sorts(x):
        return np.sort(np.sort(x * 2) + np.sort(x)) - 1

    program, graph = program_of(sorts, X)
    program.judged = set()  # whatever other tests have judged
    found = check(program, graph, [X], limit=1e3).verdict
    steps = len(program.plan.steps)
    assert found.checked == 0
    assert found.state == "partial"
    assert any(f"{steps} of {steps} steps" in left for left in found.left)
    assert check(program, graph, [X], limit=None).verdict.complete
    with plant("instruction", "mul>add"):
        program, graph = program_of(sorts, X)
        program.judged = set()
        assert not check(program, graph, [X], limit=1e3).agrees  # it was judged after all


def test_large_rows_are_judged_on_some_of_them():
    def softmax(x):
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    x = np.random.default_rng(0).normal(size=(900, 257)).astype("f4")
    program, graph = program_of(softmax, x)
    found = check(program, graph, [x], limit=None).verdict
    assert isinstance(found, Certificate)
    assert any("of 231300 elements judged" in note for note in found.notes)
    with plant("instruction", "exp>exp2"):
        program, graph = program_of(softmax, x)
        assert not check(program, graph, [x], limit=None).agrees


def test_rows_that_are_the_first_of_a_table_stand_for_no_others():
    """Distances from seven points: others than the first lie elsewhere in the argument."""

    def distances(x):
        return ((x[:, None] - x[:7]) ** 2).sum(axis=-1)

    x = np.random.default_rng(0).normal(size=(3000, 14)).astype("f4") * 9
    program, graph = program_of(distances, x)
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=x.shape).astype("f4") * 9
        found = check(program, graph, [x], limit=None).verdict
        assert isinstance(found, Certificate), str(found)


def test_compositions_are_checked_too():
    f = tn.jit(lambda x: np.clip(x, -0.5, 0.5) * 2)
    np.testing.assert_array_equal(f(X), np.clip(X, -0.5, 0.5) * 2)
    assert f.certificate(X).complete
    assert f.certificate(X) is f.certificate(X)  # found again in the cache


def test_a_loop_that_gives_nothing_before_another_one():
    """It has no number of its own among the values, and what it reads nobody may read later."""

    def shown(x):
        tn.vmap(lambda r: tn.hook("seen", r))(x)

    def of_an_argument(x):
        shown(x)
        return tn.while_loop(lambda c: c.sum() < 100, lambda c: c + 1, x)

    def of_what_was_computed(x):
        shown(x.sum(axis=1) * 2)
        return tn.while_loop(lambda c: c.sum() < 100, lambda c: c + 1, x)

    x, seen = np.arange(6.0).reshape(3, 2), []
    for f in of_an_argument, of_what_was_computed:
        jitted = tn.jit(f, verify="always")
        hooked = jitted.with_hooks({"seen": lambda n: seen.append(n.tolist())})
        np.testing.assert_array_equal(hooked(x), x + 15)
        assert jitted.certificate(x) is not None
    assert seen == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], 2.0, 10.0, 18.0]


def test_deep_and_nested_programs():
    def inner(c, r):
        return tn.while_loop(lambda v: v[1] < 3, lambda v: (v[0] * 0.5 + r, v[1] + 1), (c, 0))[0], c

    def f(x):
        y = x
        for _ in range(300):
            y = np.sort(y * 1.01, axis=0)
        return tn.scan(inner, y[0], x)

    program, graph = program_of(f, X)
    found = check(program, graph, [X], limit=None).verdict
    assert isinstance(found, Certificate), str(found)


def test_every_guard_is_tried():
    program, _ = program_of(lambda x, n: x * n, X, np.int32(3))
    count, fault = try_arguments(program)
    assert fault is None
    assert count >= 9


def test_a_large_step_that_takes_another_way_is_noted():
    """Which branch is taken within hangs on the last bits of exp."""

    def inner(s, x):
        branches = [lambda x, n=n: np.exp(x) + n for n in range(4)]
        return tn.switch(np.exp(s).astype("int32"), branches, x)

    def f(i, s, x):
        return tn.switch(i, [inner, lambda s, x: x], s, x)

    x = np.random.default_rng(0).standard_normal((70000, 2)).astype("float32")
    program, graph = program_of(f, np.int32(0), np.log(np.float32(2)), x)
    found = check(program, graph, [np.int32(0), np.log(np.float32(2)), x], limit=None).verdict
    assert isinstance(found, Certificate)
    assert any("takes another way" in tie for tie in found.near_ties)


def test_what_compare_tells():
    value = np.array([1.0, np.nan, np.inf, 2.0])
    got = np.array([1.0 + 2**-52, 1.0, np.nan, 2.0])
    found = compare(got, value, np.full(4, 2.0**-50))
    assert not found.agrees
    assert found.at == (1,)
    assert (found.nans, found.infinities) == (2, 1)
    close = compare(got[:1], value[:1], np.full(1, 2.0**-52))
    assert close.agrees
    assert close.ulp == 1


def test_parity_is_a_table_of_all_nodes():
    found = tn.parity(lambda x: tn.scan(lambda c, r: (np.sin(c) * r, c.sum()), x[0], x), X)
    assert found.agrees
    assert {"sin", "mul", "reduce_sum", "scan"} <= {row.op for row in found}
    inner = next(row for row in found if row.op == "sin")
    assert inner.times >= 3
    assert inner.name.startswith("%")
    assert "test_check.py" in inner.line
    assert "ulp" in str(found)
    with pytest.raises(tn.TenfoldError, match="no backend"):
        tn.parity(lambda x: x, X, backends=["abacus"])


def test_bisect_of_a_program_that_agrees(tmp_path):
    found = tn.bisect(lambda x: np.exp(x), X, script=tmp_path / "none.py")
    assert found.disagreement is None
    assert not (tmp_path / "none.py").exists()


def test_a_program_from_disk_is_checked_if_it_was_not(monkeypatch, tmp_path):
    monkeypatch.setattr(tn.config, "cache", tmp_path / "cache")
    forget_code(monkeypatch)

    def f(x):
        return tn.scan(lambda c, r: (np.sin(c) + r, np.sort(c)), x[0], x)

    tn.jit(f, verify="off")(X)
    plans.clear()
    again = tn.jit(f)
    again(X)
    made = again.certificate(X)
    assert made.complete
    plans.clear()
    assert tn.jit(f).certificate(X) == made


def test_a_refuted_plan_stays_refuted_on_disk(monkeypatch, tmp_path):
    monkeypatch.setattr(tn.config, "cache", tmp_path / "cache")

    def f(x):
        return np.exp(x) * 2

    with plant("instruction", "exp>exp2"):
        with pytest.warns(tn.ParityWarning):
            tn.jit(f)(X)
        plans.clear()
        with pytest.warns(tn.ParityWarning, match="disagrees"):  # as in another process
            np.testing.assert_array_equal(tn.jit(f)(X), f(X))
    plans.clear()
    g = tn.jit(f)
    g(X)
    assert g.certificate(X) is not None  # the sound plan is another entry


def test_a_running_sum_that_drifts_is_no_disagreement() -> None:
    """Each term has the same fraction, so all of NumPy's roundings go one way."""
    x = np.random.default_rng(0).integers(0, 10, 300_000, dtype=np.uint32)
    f = tn.jit(lambda x: np.var(np.cumsum(x + np.std(x))), verify=60.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", tn.ParityWarning)
        f(x)


def test_what_is_cut_off_at_zero_is_tried_both_ways() -> None:
    x = np.random.default_rng(11).standard_normal((200, 30)).astype(np.float32)

    def distances(x: Any) -> Any:
        sizes = (x * x).sum(1)
        return np.sqrt(np.maximum(sizes[:, None] + sizes - 2 * x @ x.T, 0))

    with warnings.catch_warnings():
        warnings.simplefilter("error", tn.ParityWarning)
        tn.jit(distances, verify=60.0)(x)


def test_nan_beside_what_rounding_moves_is_no_disagreement():
    graph = tn.trace(lambda x: np.cumsum(np.sin(x) * 1e3), np.zeros(9))
    x = np.linspace(1, 2, 9)
    wanted = tn.evaluate(graph, x)
    wanted[5] = np.nan
    got = wanted * (1 + 2.0**-47)  # more than a few units: runs are made
    assert farther(graph, [x], [got], [wanted]) is None
    assert farther(graph, [x], [got * 1.1], [wanted]) is not None


def test_a_root_taken_as_a_power_is_not_refused():
    """NumPy's power takes the root for one exponent, and gives NaN of -inf; for many, inf."""
    f = tn.jit(lambda x: np.power(x, np.asarray(0.5)))
    f(np.full(20_000, 4.0))
    assert f.certificate(np.full(20_000, 4.0)).complete
    assert f(np.full(20_000, -np.inf))[0] == np.inf


def test_what_a_kernel_copies_of_a_second_output_is_given():
    """A step before it makes both outputs of `top_k`; the kernel reads the second one alone."""

    def program(x):
        return np.concatenate([tn.top_k(x > 0, 1)[1]] * 10)

    given = X.reshape(-1)[:16]
    compiled, graph = program_of(program, given)
    assert isinstance(check(compiled, graph, [given]).verdict, Certificate)
