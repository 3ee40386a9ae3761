"""The disk cache: what is found, what is said on a miss, and every fault it has to survive."""

from __future__ import annotations

import errno
import logging
import multiprocessing
import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from fresh import forget_code

import tenfold as tn
from tenfold.api import policy
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.link.loader import route
from tenfold.backends.cpu.run.restored import RestoredProgram
from tenfold.cache import plans, stored
from tenfold.cache.disk import Disk
from tenfold.cache.key import key_with
from tenfold.cache.stored import disk
from tenfold.config import Config
from tenfold.errors import RecompileWarning, ValueProblem
from tenfold.parity.certificate import verdict_from_data, verdict_to_data
from tenfold.plan.file.sections import Sections, pack

pytestmark = pytest.mark.skipif(route() != "elf", reason="code is loaded from files on Linux only")

x = np.linspace(-1, 1, 12).reshape(3, 4).astype("float32")


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    """Plans in memory are forgotten before and after, and their code with them."""
    forget_code(monkeypatch)
    yield
    plans.clear()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache's own folder, in one of this test's."""
    place = tmp_path / "cache"
    monkeypatch.setattr(tn.config, "cache", place)
    return own(place)


def own(given):
    """The folder that the cache makes in the one that it is given."""
    return Path(given) / f"tenfold-{os.getuid()}"


def key(name):
    return key_with((("code", str(name)),))


def data_of(sections):
    return bytes(sections.raw("a"))


def make():
    def energy(x, y=2):
        return np.tanh(x * 1.5).sum(axis=1) + y

    return tn.jit(energy)


def restored(function, *args):
    return isinstance(function.plan(*args).program, RestoredProgram)


def entry(folder):
    (found,) = folder.glob("*.plan")
    return found


def test_a_second_process_compiles_nothing(folder):
    script = """
        import sys
        import numpy as np, tenfold as tn
        COMPILER = "tenfold.backends.llvm.library"
        @tn.jit
        def f(x):
            h = np.exp(x - x.max(axis=1, keepdims=True))
            return np.sort(h / h.sum(axis=1, keepdims=True)) @ x.T
        x = np.linspace(-1, 1, 12).reshape(3, 4).astype("float32")
        print(f(x).tobytes().hex(), COMPILER in sys.modules, tn.stats()["kernels_compiled"])
    """
    environment = {**os.environ, "TENFOLD_CACHE": str(folder)}
    found = [
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)],
            env=environment, capture_output=True, text=True, check=True,
        ).stdout.split()
        for _ in range(2)
    ]  # fmt: skip
    assert found[0][0] == found[1][0]
    assert found[0][1] == "True"
    assert found[1][1:] == ["False", "0"]


def test_a_second_process_compiles_nothing_for_another_shape(folder):
    script = """
        import sys
        import numpy as np, tenfold as tn
        COMPILER = "tenfold.backends.llvm.library"
        @tn.jit
        def f(x):
            h = np.exp(x - x.max(axis=1, keepdims=True))
            return h / h.sum(axis=1, keepdims=True)
        x = np.linspace(-1, 1, int(sys.argv[1])).reshape(3, -1)
        assert np.allclose(f(x), f.__wrapped__(x))
        print(tn.stats()["plans"], tn.stats()["kernels_compiled"])
    """
    environment = {**os.environ, "TENFOLD_CACHE": str(folder)}
    found = [
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script), extent],
            env=environment, capture_output=True, text=True, check=True,
        ).stdout.split()
        for extent in ("300", "1200")
    ]  # fmt: skip
    assert found == [["1", "1"], ["1", "0"]]


def test_what_is_found_gives_the_same_bits(folder):
    want = make()(x)
    assert not restored(make(), x)
    plans.clear()
    assert restored(make(), x)
    assert np.array_equal(make()(x), want)
    assert make().plan(x).explain()  # planned again, with today's lines


def test_a_plan_with_an_empty_constant_is_kept(folder):
    def empty():
        def last(m):
            made = np.zeros(3)
            made[2] = m[0, 0] - m[2, 3:] @ made[3:]
            return made

        return tn.jit(last)

    m = np.arange(9.0).reshape(3, 3) + 1
    want = empty()(m)
    plans.clear()
    assert restored(empty(), m)
    assert np.array_equal(empty()(m), want)
    assert np.array_equal(want, [0, 0, 1])


def test_everything_is_the_owners_alone(folder):
    make()(x)
    for path in (folder, *folder.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path
    assert entry(folder)
    assert len(list(folder.glob("*.object"))) <= 3


def test_a_certificate_is_kept_with_the_entry(folder):
    graph = make().trace(x)
    options = stored.options_of(strict=False)
    f = make()
    f(x)
    written = f.certificate(x)
    assert written.guards > 3
    program = stored.find_program(BACKEND, graph, options, lambda: None)
    verdict = stored.find_certificate(graph, options, program)
    assert verdict_from_data(verdict) == (written, None)
    assert isinstance(program, RestoredProgram)
    plans.clear()
    g = make()
    assert restored(g, x)
    assert g.certificate(x) == written  # no second check


def refute(function, options):
    """Write down that the plan of a function was refuted, as another process would."""
    graph = function.trace(x)
    program = stored.find_program(BACKEND, graph, options, lambda: None)
    assert stored.keep_certificate(graph, options, program, verdict_to_data(None, "step 0 is off"))
    plans.clear()


def test_a_refuted_plan_stays_refuted(folder):
    want = make()(x)
    refute(make(), stored.options_of(strict=False))
    f = make()
    with pytest.warns(tn.ParityWarning, match="step 0 is off"):
        assert np.allclose(f(x), want)
    assert f.certificate(x) is None
    assert np.allclose(f(x), want)  # said once
    make()(x)
    g = tn.jit(f.__wrapped__, strict=True)
    g(x)
    refute(g, stored.options_of(strict=True))
    g = tn.jit(f.__wrapped__, strict=True)
    for _ in range(2):
        with pytest.raises(tn.ParityError, match="step 0 is off"):
            g(x)


def test_every_process_says_that_a_plan_was_refuted(folder, tmp_path):
    """Each once, whether another has found it or itself."""
    script = """
        import warnings
        import numpy as np, tenfold as tn
        f = tn.jit(lambda x: x * 3 + 1)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in range(3):
                y = f(np.ones(4))
        print(y.tolist(), [w.category.__name__ for w in said], tn.stats()["cache_misses"])
    """
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(script))
    faulty = [sys.executable, str(Path(__file__).parents[1] / "faults.py"), "instruction mul>add"]
    environment = {**os.environ, "TENFOLD_CACHE": str(folder.parent)}
    for misses in (1, 0, 0):
        done = subprocess.run(
            [*faulty, str(path)], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout == f"[4.0, 4.0, 4.0, 4.0] ['ParityWarning'] {misses}\n"


def test_a_refuted_plan_is_neither_called_nor_saved(folder, tmp_path):
    want = make()(x)
    refute(make(), stored.options_of(strict=False))
    plan = make().plan(x)
    with pytest.warns(tn.ParityWarning, match="step 0 is off"):
        assert np.allclose(plan(x), want)
    assert np.allclose(plan(x), want)
    with pytest.raises(tn.ParityError, match="step 0 is off"):
        plan.save(tmp_path / "f.plan")


def test_a_refutation_outlives_the_entry(folder):
    """The same code made again is the code that was refuted."""
    make()(x)
    refute(make(), stored.options_of(strict=False))
    entry(folder).unlink()
    with pytest.warns(tn.ParityWarning, match="step 0 is off"):
        make()(x)


def test_a_refuted_plan_is_tried_again_with_another_version(folder, monkeypatch):
    from tenfold.cache import key

    make()(x)
    refute(make(), stored.options_of(strict=False))
    with pytest.warns(tn.ParityWarning):
        make()(x)
    assert make().certificate(x) is None
    plans.clear()
    now = dict(key.versions())
    monkeypatch.setattr(key, "versions", lambda: {**now, "numpy": "9.9"})
    f = make()
    f(x)
    assert f.certificate(x).complete


def test_a_refuted_plan_does_not_answer_for_lazy_arrays(folder, monkeypatch):
    monkeypatch.setattr(tn.config, "compile", "always")
    want = np.asarray(tn.asarray(x) * 2.5)
    graph = list(plans._held.values())[-1][0]
    options = stored.options_of(strict=False)
    program = stored.find_program(BACKEND, graph, options, lambda: None)
    stored.keep_certificate(graph, options, program, verdict_to_data(None, "step 0 is off"))
    plans.clear()
    monkeypatch.setattr(policy, "counts", policy.Counts())
    with pytest.warns(tn.ParityWarning, match="step 0 is off"):
        assert np.array_equal(np.asarray(tn.asarray(x) * 2.5), want)
    assert np.array_equal(np.asarray(tn.asarray(x) * 2.5), want)


# An entry proves its key.


def other():
    return tn.jit(lambda x, y=2: np.sin(x).sum(axis=1) + y)


@pytest.mark.parametrize("kind", ["plan", "certificate"])
def test_an_entry_copied_over_anothers_name_is_a_miss(folder, caplog, kind):
    want = make()(x)
    (mine,) = folder.glob(f"*.{kind}")
    whole = mine.read_bytes()
    other()(x)
    (theirs,) = set(folder.glob(f"*.{kind}")) - {mine}
    shutil.copy(theirs, mine)
    plans.clear()
    if kind == "plan":
        said = tn.explain_cache(make(), x)
        assert "another's entry" in said
        assert f"graph: {other().trace(x).digest} there, {make().trace(x).digest} here" in said
        assert theirs.read_bytes() == mine.read_bytes()  # it was but looked at
    f = make()
    assert np.array_equal(f(x), want)
    assert f.certificate(x).graph == f.trace(x).digest
    assert "another's entry" in caplog.text
    if kind == "plan":
        assert mine.read_bytes() == whole
    plans.clear()
    assert restored(make(), x)
    assert make().certificate(x).graph == f.trace(x).digest


def test_code_of_all_plans_proves_its_key(folder, monkeypatch, caplog):
    from tenfold.backends.cpu.run import fixed

    target = BACKEND.target()
    make()(x)
    want = fixed.fixed(fixed.STEPS, target)
    gate = fixed.fixed(fixed.GATE, target)
    monkeypatch.setattr(fixed, "_objects", {})
    fixed.fixed(fixed.GATE, target)
    fixed.fixed(fixed.STEPS, target)
    objects = {
        path: bytes(Sections(path.read_bytes()).raw("object")) for path in folder.glob("*.object")
    }
    (steps,) = [path for path, data in objects.items() if data == want]
    (other,) = [path for path, data in objects.items() if data == gate]
    shutil.copy(other, steps)
    monkeypatch.setattr(fixed, "_objects", {})
    assert fixed.fixed(fixed.STEPS, target) == want
    assert "another's entry" in caplog.text
    assert bytes(Sections(steps.read_bytes()).raw("object")) == want


def test_a_certificate_of_other_code_counts_for_nothing(folder, caplog):
    make()(x)
    graph, options = make().trace(x), stored.options_of(strict=False)
    program = stored.find_program(BACKEND, graph, options, lambda: None)
    program.checksum = bytes(32)
    stored.keep_certificate(graph, options, program, verdict_to_data(None, "step 0 is off"))
    plans.clear()
    f = make()
    f(x)
    assert "of other code" in caplog.text
    assert f.certificate(x).complete


def test_a_certificate_is_replaced_without_touching_the_plan(folder):
    f = make()
    f(x)
    plan = entry(folder).read_bytes()
    program = f.plan(x).program
    graph, options = f.trace(x), stored.options_of(strict=False)
    assert stored.keep_certificate(graph, options, program, {"more": 1})
    assert stored.find_certificate(graph, options, program) == {"more": 1}
    assert entry(folder).read_bytes() == plan


def test_a_record_copied_to_another_name_explains_nothing(folder):
    make()(x)
    (record,) = folder.glob("index/*/*.record")
    record.rename(record.with_name(f"{'0' * 64}.record"))
    assert "no plan of this function" in tn.explain_cache(make(), x[:2])


def test_options_are_part_of_the_key(folder):
    def f(x):
        return x * 2 + 1

    tn.jit(f)(x)
    tn.jit(f, strict=True)(x)
    assert len(list(folder.glob("*.plan"))) == 2


def test_the_environment_names_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TENFOLD_CACHE_BYTES", "1000")
    for given, want in (("off", None), (str(tmp_path), str(tmp_path))):
        monkeypatch.setenv("TENFOLD_CACHE", given)
        assert (Config().cache, Config().cache_bytes) == (want, 1000)
    monkeypatch.delenv("TENFOLD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Config().cache == str(tmp_path / "tenfold" / "plans")
    monkeypatch.setenv("TENFOLD_CACHE_BYTES", "much")
    with pytest.raises(ValueProblem, match="much"):
        Config()


# A miss explains itself.


def test_a_miss_names_what_differs(folder, caplog):
    f = make()
    assert "no plan of this function" in tn.explain_cache(f, x)
    f(x)
    assert "compiled in this process" in tn.explain_cache(f, x)
    plans.clear()
    assert "on disk" in tn.explain_cache(make(), x)
    said = tn.explain_cache(make(), x[:2])
    assert "shape of x: (3, 4) before, (2, 4) now" in said
    assert "dtype" not in said
    assert "dtype of x: float32 before, float64 now" in tn.explain_cache(make(), x.astype("f8"))
    caplog.set_level(logging.INFO, "tenfold")
    make()(x[:2])
    assert "shape of x: (3, 4) before, (2, 4) now" in caplog.text


def test_a_miss_names_a_changed_version(folder, monkeypatch):
    from tenfold.cache import key, record

    make()(x)
    plans.clear()
    now = dict(record.versions())
    for module in (key, record):
        monkeypatch.setattr(module, "versions", lambda: {**now, "numpy": "9.9"})
    said = tn.explain_cache(make(), x)
    assert f"numpy: {now['numpy']} before, 9.9 now" in said


def test_a_hit_is_named_for_donated_and_padded_arguments_too(folder):
    def step(x):
        x += 1
        return x

    f = tn.jit(step, donate="x")
    f(x.copy())
    assert "compiled in this process" in tn.explain_cache(f, x)
    plans.clear()
    assert "on disk" in tn.explain_cache(f, x)
    g = tn.jit(lambda x: x * 7, buckets={"x": [4]})
    g(x)
    assert "compiled in this process" in tn.explain_cache(g, x[:1])
    assert "shape of x: (4, 4) before, (8, 4) now" in tn.explain_cache(g, np.ones((5, 4), "f4"))


def test_a_miss_names_a_changed_program(folder):
    def make(n):
        def f(x):
            return x * n

        return tn.jit(f)

    make(2)(x)
    assert "the program: its graph is another" in tn.explain_cache(make(3), x)


def test_compiling_again_and_again_warns_once(folder):
    def waves(x, n):
        for _ in range(n):
            x = np.sin(x)
        return x

    f = tn.jit(waves, static="n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(1, 16):
            f(x, n)
    (found,) = [w for w in caught if w.category is RecompileWarning]
    assert "static n: 11 before, 12 now" in str(found.message)
    assert "not as a static argument" in str(found.message)


def test_shapes_that_share_code_warn_of_nothing_and_wait_for_the_disk(folder):
    f = make()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(60, 90):
            f(np.ones((n, 300)))
    for _ in range(1000):
        if len(list(folder.glob("*.certificate"))) == len(list(folder.glob("*.plan"))) == 30:
            break
        time.sleep(0.01)
    plans.clear()
    assert restored(make(), np.ones((77, 300)))
    assert make().certificate(np.ones((77, 300))).complete


# Faults. Each time: the right result, and no more than a word about it.


def damaged(path, kind):
    data = bytearray(path.read_bytes())
    if kind == "truncated":
        del data[len(data) // 2 :]
    elif kind == "empty":
        data.clear()
    elif kind == "flipped":
        data[len(data) // 3] ^= 16
    elif kind == "older":
        data[8] = 0
    else:
        data[:] = pack({"other": b"sections"}, compress=False)
    path.write_bytes(data)


@pytest.mark.parametrize("kind", ["truncated", "empty", "flipped", "older", "another"])
def test_a_damaged_entry_is_moved_aside_and_made_again(folder, caplog, kind):
    want = make()(x)
    whole = entry(folder).read_bytes()
    damaged(entry(folder), kind)
    plans.clear()
    assert np.array_equal(make()(x), want)
    assert "will be made again" in caplog.text
    assert len(list((folder / "aside").iterdir())) == 1
    assert len(entry(folder).read_bytes()) == len(whole)
    plans.clear()
    assert restored(make(), x)


def test_damaged_shared_code_is_made_again(folder, monkeypatch, caplog):
    from tenfold.backends.cpu.run import fixed

    make()(x)
    for path in folder.glob("*.object"):
        damaged(path, "flipped")
    monkeypatch.setattr(fixed, "_objects", {})
    plans.clear()
    assert make()(x) is not None


def _child(folder, number, queue, start):
    tn.config.cache = folder
    start.wait()
    f = make()
    queue.put((number, f(x).tobytes()))


def test_eight_processes_on_one_key(folder):
    context = multiprocessing.get_context("fork")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start, queue = context.Event(), context.Queue()
        children = [
            context.Process(target=_child, args=(folder.parent, n, queue, start)) for n in range(8)
        ]
        for child in children:
            child.start()
    start.set()
    results = dict(queue.get(timeout=120) for _ in children)
    for child in children:
        child.join()
    assert len(results) == 8
    assert len(set(results.values())) == 1
    assert not list(folder.rglob("partial-*"))
    assert restored(make(), x)


WRITER = """
    import os, sys
    from tenfold.cache.disk import Disk
    from tenfold.cache.key import key_with
    store = Disk(sys.argv[1], 1 << 20)
    keys = [key_with((("code", str(n)),)) for n in range(4)]
    def write():
        n = 0
        while True:
            store.write("plan", keys[n % 4], {"a": bytes([n % 4]) * 40_000})
            store.keep_record("f", keys[n % 4], {"record": str(n).encode()})
            n += 1
    print("ready", flush=True)
    while True:  # a child for each line that is read; the parent kills it
        line = sys.stdin.readline()
        if not line:
            break
        child = os.fork()
        if child == 0:
            write()
        print(child, flush=True)
        os.waitpid(child, 0)
"""


def test_kills_in_the_middle_of_writing_lose_nothing(tmp_path):
    """200 writers are killed, each a little later than the last; whatever is there is whole."""
    folder = own(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    reader = Disk(tmp_path, 1 << 20)
    seen: set[int] = set()
    for kill in range(200):
        process.stdin.write("go\n")
        process.stdin.flush()
        child = int(process.stdout.readline())
        time.sleep(kill * 0.00005)
        os.kill(child, signal.SIGKILL)
        for n in range(4):
            found = reader.read("plan", key(n))
            if found is None:
                assert n not in seen  # once written, never lost
            else:
                seen.add(n)
                assert data_of(found) == bytes([n]) * 40_000
        reader.records("f")
    process.stdin.close()
    process.wait()
    process.stdout.close()
    assert seen
    assert not (folder / "aside").exists()
    for path in folder.rglob("partial-*"):  # what the killed left is swept when it is old
        os.utime(path, (0, 0))
    reader.sweep()
    assert not list(folder.rglob("partial-*"))


def _killed_at(given, step, data):
    """A writer that is killed at one step of writing."""

    def kill(*args, **more):
        os.kill(os.getpid(), signal.SIGKILL)

    def after(real):
        def call(*args, **more):
            real(*args, **more)
            kill()

        return call

    class Half:
        def __init__(self, number, mode):
            self.number = number

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

        def write(self, data):
            os.write(self.number, data[: len(data) // 2])
            kill()

    import tenfold.whole as module

    if step == "before it is opened":
        os.open = kill
    elif step == "when it is open":
        os.open = after(os.open)
    elif step == "half written":
        module.open = Half
    elif step == "before it is moved":
        os.replace = kill
    else:
        os.replace = after(os.replace)
    Disk(given, 1 << 20).write("plan", key("a"), {"a": data})


STEPS = (
    "before it is opened",
    "when it is open",
    "half written",
    "before it is moved",
    "when it is moved",
)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_each_step_of_writing(tmp_path, step, before):
    old, new = (bytes([n]) * 9000 for n in (1, 2))
    if before:
        Disk(tmp_path, 1 << 20).write("plan", key("a"), {"a": old})
    child = os.fork()
    if child == 0:
        try:
            _killed_at(tmp_path, step, new)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    found = Disk(tmp_path, 1 << 20).read("plan", key("a"))
    if step == "when it is moved":
        assert data_of(found) == new
    elif before:
        assert data_of(found) == old
    else:
        assert found is None
    assert not (own(tmp_path) / "aside").exists()


def test_a_full_disk(folder, monkeypatch, caplog):
    real = os.replace

    def full(source, target):
        if "partial-" in str(source):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "replace", full)
    want = make()(x)
    assert "No space left" in caplog.text
    assert not list(folder.rglob("partial-*"))
    assert not list(folder.glob("*.plan"))
    monkeypatch.undo()
    monkeypatch.setattr(tn.config, "cache", folder.parent)
    plans.clear()
    assert np.array_equal(make()(x), want)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="mounting needs root")
def test_a_disk_that_is_really_full(folder, caplog):
    folder.mkdir(mode=0o700, parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4k,mode=0700", "tmpfs", str(folder)],
        capture_output=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip("this system does not mount")
    try:
        assert make()(x).shape == (3,)
        assert "not written to" in caplog.text
        assert not list(folder.rglob("partial-*"))
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_read_only_folder_is_read(folder, monkeypatch, caplog):
    want = make()(x)
    plans.clear()
    real = os.open

    def read_only(path, flags, *rest, **more):
        if flags & os.O_WRONLY and str(folder) in str(path):
            raise OSError(errno.EROFS, "Read-only file system")
        return real(path, flags, *rest, **more)

    def refused(*args, **more):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "open", read_only)
    monkeypatch.setattr(os, "utime", refused)
    assert restored(make(), x)
    assert np.array_equal(make()(x), want)
    make()(x[:2])
    assert "Read-only" in caplog.text


def test_a_folder_that_cant_be_made(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr(tn.config, "cache", tmp_path / "file" / "cache")
    plans.clear()
    assert make()(x).shape == (3,)
    assert "not used" in caplog.text


def test_a_folder_may_be_named_from_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("here", "a/b/c", "./d"):
        monkeypatch.setattr(tn.config, "cache", name)
        plans.clear()
        make()(x)
        assert entry(own(tmp_path / name))
        assert stat.S_IMODE(own(tmp_path / name).stat().st_mode) == 0o700


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="giving needs root")
def test_a_folder_given_to_another_is_refused(folder, monkeypatch, caplog):
    """The same with a folder, and then with an entry, that really belongs to someone else."""
    make()(x)
    os.chown(folder, 12345, 12345)
    monkeypatch.setattr(stored, "_disks", {})
    plans.clear()
    assert not restored(make(), x)
    assert "belongs to another user" in caplog.text
    assert "can't be used" in tn.explain_cache(make(), x[:1])
    os.chown(folder, 0, 0)
    os.chown(entry(folder), 12345, 12345)
    caplog.clear()
    monkeypatch.setattr(stored, "_disks", {})
    plans.clear()
    assert not restored(make(), x)
    assert "belongs to another user" in caplog.text


def test_a_file_open_to_others_is_not_read(folder, caplog):
    make()(x)
    os.chmod(entry(folder), 0o666)
    plans.clear()
    assert not restored(make(), x)
    assert "open to others" in caplog.text


@pytest.mark.parametrize("mode", [0o1777, 0o2775, 0o755, 0o777])
def test_a_folder_keeps_its_mode(tmp_path, monkeypatch, mode):
    """The user's folder is the user's; the cache's own in it is closed."""
    given = tmp_path / "shared"
    given.mkdir()
    os.chmod(given, mode)
    monkeypatch.setattr(tn.config, "cache", given)
    make()(x)
    plans.clear()
    assert restored(make(), x)
    assert stat.S_IMODE(given.stat().st_mode) == mode
    assert not stat.S_IMODE(own(given).stat().st_mode) & 0o077


def test_an_own_folder_that_others_may_write_to_is_refused(folder, monkeypatch, caplog):
    folder.mkdir(parents=True)
    os.chmod(folder, 0o777)
    make()(x)
    assert "others may write to it" in caplog.text
    assert "can't be used" in tn.explain_cache(make(), x[:1])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o777
    assert not list(folder.iterdir())


@pytest.mark.parametrize("there", [True, False])
def test_a_link_in_place_of_the_own_folder_is_refused(folder, caplog, tmp_path, there):
    victim = tmp_path / "victim"
    if there:
        victim.mkdir()
    folder.parent.mkdir()
    folder.symlink_to(victim)
    make()(x)
    assert "it is a link" in caplog.text
    assert not there or not list(victim.iterdir())
    assert there or not victim.exists()


def test_a_link_in_place_of_an_entry_is_replaced(folder, tmp_path):
    make()(x)
    place = entry(folder)
    aim = tmp_path / "aim"
    place.rename(aim)
    place.symlink_to(aim)
    before = aim.read_bytes()
    plans.clear()
    assert not restored(make(), x)
    assert not place.is_symlink()
    assert aim.read_bytes() == before


def test_a_pipe_in_place_of_an_entry_is_not_waited_for(folder):
    make()(x)
    entry(folder).unlink()
    os.mkfifo(folder / "pipe")
    graph = make().trace(x)
    name = stored.plan_key(BACKEND, graph, stored.options_of(strict=False)).name
    (folder / "pipe").rename(folder / f"{name}.plan")
    plans.clear()
    assert make()(x).shape == (3,)


def test_an_entry_too_large_to_be_one_is_not_read(folder, caplog):
    make()(x)
    with open(entry(folder), "r+b") as file:
        file.truncate(1 << 40)
    plans.clear()
    assert make()(x).shape == (3,)
    assert "more than an entry has" in caplog.text


USERS_OWN = (
    "results.txt",
    "partial-results",
    "partial-1-0123456789abcdef",
    "a.plan",
    f"{'0' * 64}.plan",
    "index/notes",
    "aside/notes",
)


@pytest.mark.parametrize("inside", [True, False])
def test_what_is_not_the_caches_is_never_dropped(tmp_path, inside):
    """Old files of the user's, of all names: beside the cache's own folder, and in it."""
    place = own(tmp_path) if inside else tmp_path
    Disk(tmp_path, 1).usable()
    for name in USERS_OWN:
        path = place / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"mine" * 1000)
        os.utime(path, (0, 0))
    (place / f"{'1' * 64}.plan").symlink_to(place / "results.txt")
    (place / "index" / "elsewhere").symlink_to(place / "aside")
    there = sorted(place.rglob("*"))
    store = Disk(tmp_path, 100)
    store.write("plan", key(1), {"a": b"x" * 1000})
    store.write("plan", key(2), {"a": b"x" * 1000})
    store.sweep()
    assert set(there) <= set(place.rglob("*"))
    assert all((place / name).read_bytes() == b"mine" * 1000 for name in USERS_OWN)
    assert store.read("plan", key(1)) is None  # its own it does drop
    assert not (own(tmp_path) / f"{key(2).name}.plan").exists()


@pytest.mark.parametrize("written", [0, 3, 8, 50])
def test_what_a_killed_writer_left_is_swept_when_it_is_old(tmp_path, written):
    store = Disk(tmp_path, 1 << 20)
    store.write("plan", key(1), {"a": b"x"})
    whole = entry(own(tmp_path)).read_bytes()
    left = own(tmp_path) / "partial-77-0123456789abcdef"
    left.write_bytes(whole[:written])
    os.chmod(left, 0o600)
    store.sweep()
    assert left.exists()  # its writer may be at it
    os.utime(left, (0, 0))
    store.sweep()
    assert not left.exists()


def _sweep(given, start):
    start.wait()
    for _ in range(20):
        Disk(given, 50_000).sweep()


def test_processes_that_sweep_at_once(tmp_path):
    store = Disk(tmp_path, 1 << 30)
    for n in range(40):
        store.write("plan", key(n), {"a": b"x" * 5000})
    context = multiprocessing.get_context("fork")
    start = context.Event()
    children = [context.Process(target=_sweep, args=(tmp_path, start)) for _ in range(4)]
    for child in children:
        child.start()
    start.set()
    for child in children:
        child.join()
        assert child.exitcode == 0
    assert 30_000 < store.size() <= 50_000


def test_the_clock_goes_backwards(folder, monkeypatch):
    """Entries from the future are as good as any, and do not push out today's."""
    given = folder.parent
    store = Disk(given, 100_000)
    parts = {"a": b"x" * 20_000}
    for n in range(3):
        store.write("plan", key(f"old{n}"), parts)
    ahead = time.time() + 365 * 24 * 3600
    for path in folder.iterdir():
        os.utime(path, (ahead, ahead))
    later = Disk(given, 100_000)  # another process, with the clock set right
    for n in range(4):
        later.write("plan", key(f"new{n}"), parts)
        time.sleep(0.01)
    assert later.size() <= 100_000
    names = {path.name for path in folder.glob("*.plan")}
    assert names >= {f"{key(f'new{n}').name}.plan" for n in range(4)}
    assert all(path.stat().st_mtime <= time.time() + 60 for path in folder.glob("*.plan"))
    make()(x)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    plans.clear()
    assert restored(make(), x)
    disk().sweep()
    plans.clear()
    assert restored(make(), x)


def test_the_least_recently_used_goes_first(tmp_path):
    store = Disk(tmp_path, 100_000)
    parts = {"a": b"x" * 20_000}
    hour = 3600
    for n in range(4):
        store.write("plan", key(n), parts)
        when = time.time() - (10 - n) * hour
        os.utime(own(tmp_path) / f"{key(n).name}.plan", (when, when))
    fresh = Disk(tmp_path, 100_000)
    assert fresh.read("plan", key(0)) is not None  # used now
    fresh.write("plan", key(4), parts)
    names = {p.name for p in own(tmp_path).glob("*.plan")}
    assert names >= {f"{key(n).name}.plan" for n in (0, 4)}
    assert f"{key(1).name}.plan" not in names
    assert fresh.size() <= 100_000


def test_without_its_source_nothing_is_kept(folder, monkeypatch, caplog):
    """What can't be told from other code of one number is not shared with it."""
    monkeypatch.setattr(stored, "source", lambda memory: "")
    monkeypatch.setattr(stored, "_disks", {})
    make()(x)
    assert "own code can't be read" in caplog.text
    assert not folder.exists()


def test_an_entry_of_another_interface_is_made_again(folder, monkeypatch, caplog):
    from tenfold.backends.cpu.run import code as module

    want = make()(x)
    plans.clear()
    monkeypatch.setattr(module, "interface", lambda _: "another")
    assert np.array_equal(make()(x), want)
    assert "called in another way" in caplog.text
