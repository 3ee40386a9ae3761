"""The disk cache: what is found, what is said on a miss, and every fault it has to survive."""

from __future__ import annotations

import errno
import logging
import multiprocessing
import os
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

import tenfold as tn
from tenfold.backends.cpu.loader import route
from tenfold.cache import plans, stored
from tenfold.cache.disk import Disk
from tenfold.cache.stored import disk
from tenfold.config import Config
from tenfold.errors import RecompileWarning, ValueProblem
from tenfold.execute.restored import Restored
from tenfold.parity.certificate import verdict_from_data, verdict_to_data
from tenfold.plan.sections import pack

pytestmark = pytest.mark.skipif(route() != "elf", reason="code is loaded from files on Linux only")

x = np.linspace(-1, 1, 12).reshape(3, 4).astype("float32")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache of this test's own; plans in memory are forgotten before and after."""
    place = tmp_path / "cache"
    monkeypatch.setattr(tn.config, "cache", place)
    plans.clear()
    yield place
    plans.clear()


def make():
    def energy(x, y=2):
        return np.tanh(x * 1.5).sum(axis=1) + y

    return tn.jit(energy)


def restored(function, *args):
    return isinstance(function.plan(*args).program, Restored)


def entry(folder):
    (found,) = folder.glob("*.plan")
    return found


def test_a_second_process_compiles_nothing(folder):
    script = """
        import sys
        import numpy as np, tenfold as tn
        @tn.jit
        def f(x):
            h = np.exp(x - x.max(axis=1, keepdims=True))
            return np.sort(h / h.sum(axis=1, keepdims=True)) @ x.T
        x = np.linspace(-1, 1, 12).reshape(3, 4).astype("float32")
        print(f(x).tobytes().hex(), "llvmlite" in sys.modules, tn.stats()["kernels_compiled"])
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


def test_what_is_found_gives_the_same_bits(folder):
    want = make()(x)
    assert not restored(make(), x)
    plans.clear()
    assert restored(make(), x)
    assert np.array_equal(make()(x), want)
    assert make().plan(x).explain()  # planned again, with today's lines


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
    assert not stored.certify(graph, options, {})
    f = make()
    f(x)
    written = f.certificate(x)
    assert written.guards > 3
    program, verdict = stored.find_program(graph, options, lambda: None)
    assert verdict_from_data(verdict) == (written, None)
    assert isinstance(program, Restored)
    plans.clear()
    g = make()
    assert restored(g, x)
    assert g.certificate(x) == written  # no second check


def test_a_refuted_plan_stays_refuted(folder):
    graph = make().trace(x)
    want = make()(x)
    data = verdict_to_data(None, "step 0 is wrong")
    assert stored.certify(graph, stored.options_of(strict=False), data)
    plans.clear()
    f = make()
    assert np.allclose(f(x), want)
    assert f.certificate(x) is None
    g = tn.jit(f.__wrapped__, strict=True)
    g(x)
    assert stored.certify(graph, stored.options_of(strict=True), data)
    plans.clear()
    g = tn.jit(f.__wrapped__, strict=True)
    with pytest.raises(tn.ParityError, match="step 0 is wrong"):
        g(x)


def test_a_refuted_plan_is_tried_again_with_another_version(folder, monkeypatch):
    from tenfold.cache import record

    make()(x)
    refuted = verdict_to_data(None, "step 0 is wrong")
    assert stored.certify(make().trace(x), stored.options_of(strict=False), refuted)
    plans.clear()
    make()(x)
    assert make().certificate(x) is None
    plans.clear()
    now = dict(record.versions())
    monkeypatch.setattr(record, "versions", lambda: {**now, "llvmlite": "9.9"})
    f = make()
    f(x)
    assert f.certificate(x).complete


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
    from tenfold.cache import record

    make()(x)
    plans.clear()
    now = dict(record.versions())
    monkeypatch.setattr(record, "versions", lambda: {**now, "llvmlite": "9.9"})
    said = tn.explain_cache(make(), x)
    assert f"llvmlite: {now['llvmlite']} before, 9.9 now" in said


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
    f = make()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(1, 16):
            f(np.ones((n, 3)))
    (found,) = [w for w in caught if w.category is RecompileWarning]
    assert "shape of x: (11, 3) before, (12, 3) now" in str(found.message)
    assert "buckets" in str(found.message)


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
    from tenfold.execute import fixed

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
            context.Process(target=_child, args=(folder, n, queue, start)) for n in range(8)
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
    from tenfold.plan.sections import pack
    store = Disk(sys.argv[1], 1 << 20)
    big = [pack({"a": bytes([n]) * 40_000}, compress=False) for n in range(4)]
    def write():
        n = 0
        while True:
            store.write(f"key{n % 4}.plan", big[n % 4])
            store.keep_record("f", f"key{n % 4}", {"shape of x": str(n)})
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
    folder = tmp_path / "cache"
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    reader = Disk(folder, 1 << 20)
    seen: set[str] = set()
    for kill in range(200):
        process.stdin.write("go\n")
        process.stdin.flush()
        child = int(process.stdout.readline())
        time.sleep(kill * 0.00005)
        os.kill(child, signal.SIGKILL)
        for n in range(4):
            found = reader.read(f"key{n}.plan")
            if found is None:
                assert f"key{n}" not in seen  # once written, never lost
            else:
                seen.add(f"key{n}")
                assert bytes(found.raw("a")) == bytes([n]) * 40_000
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


def _killed_at(folder, step, data):
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

    from tenfold.cache import disk as module

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
    Disk(folder, 1 << 20).write("key.plan", data)


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
    old, new = (pack({"a": bytes([n]) * 9000}, compress=False) for n in (1, 2))
    folder = tmp_path / "cache"
    if before:
        Disk(folder, 1 << 20).write("key.plan", old)
    child = os.fork()
    if child == 0:
        try:
            _killed_at(folder, step, new)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    found = Disk(folder, 1 << 20).read("key.plan")
    if step == "when it is moved":
        assert bytes(found.raw("a")) == bytes([2]) * 9000
    elif before:
        assert bytes(found.raw("a")) == bytes([1]) * 9000
    else:
        assert found is None
    assert not (folder / "aside").exists()


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
    monkeypatch.setattr(tn.config, "cache", folder)
    plans.clear()
    assert np.array_equal(make()(x), want)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="mounting needs root")
def test_a_disk_that_is_really_full(folder, caplog):
    folder.mkdir(mode=0o700)
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
        assert entry(tmp_path / name)
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o700


def test_anothers_folder_is_refused(folder, monkeypatch, caplog):
    make()(x)
    plans.clear()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    monkeypatch.setattr(stored, "_disks", {})
    assert not restored(make(), x)
    assert make()(x).shape == (3,)
    assert "belongs to another user" in caplog.text
    assert "can't be used" in tn.explain_cache(make(), x[:1])


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="giving needs root")
def test_a_folder_given_to_another_is_refused(folder, monkeypatch, caplog):
    """The same with a folder, and then with an entry, that really belongs to someone else."""
    make()(x)
    os.chown(folder, 12345, 12345)
    monkeypatch.setattr(stored, "_disks", {})
    plans.clear()
    assert not restored(make(), x)
    assert "belongs to another user" in caplog.text
    os.chown(folder, 0, 0)
    os.chown(entry(folder), 12345, 12345)
    caplog.clear()
    monkeypatch.setattr(stored, "_disks", {})
    plans.clear()
    assert not restored(make(), x)
    assert "belongs to another user" in caplog.text


def test_a_folder_open_to_others_is_closed(folder):
    folder.mkdir(mode=0o755)
    os.chmod(folder, 0o777)
    make()(x)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_clock_goes_backwards(folder, monkeypatch):
    """Entries from the future are as good as any, and do not push out today's."""
    store = Disk(folder, 100_000)
    data = pack({"a": b"x" * 20_000}, compress=False)
    for n in range(3):
        store.write(f"old{n}.plan", data)
    ahead = time.time() + 365 * 24 * 3600
    for path in folder.iterdir():
        os.utime(path, (ahead, ahead))
    later = Disk(folder, 100_000)  # another process, with the clock set right
    for n in range(4):
        later.write(f"new{n}.plan", data)
        time.sleep(0.01)
    assert later.size() <= 100_000
    names = {path.name for path in folder.glob("*.plan")}
    assert names >= {f"new{n}.plan" for n in range(4)}
    assert all(path.stat().st_mtime <= time.time() + 60 for path in folder.glob("old*"))
    make()(x)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    plans.clear()
    assert restored(make(), x)
    disk().sweep()
    plans.clear()
    assert restored(make(), x)


def test_the_least_recently_used_goes_first(tmp_path):
    store = Disk(tmp_path, 100_000)
    data = pack({"a": b"x" * 20_000}, compress=False)
    hour = 3600
    for n in range(4):
        store.write(f"{n}.plan", data)
        when = time.time() - (10 - n) * hour
        os.utime(tmp_path / f"{n}.plan", (when, when))
    fresh = Disk(tmp_path, 100_000)
    assert fresh.read("0.plan") is not None  # used now
    fresh.write("4.plan", data)
    names = {p.name for p in Path(tmp_path).glob("*.plan")}
    assert "0.plan" in names
    assert "4.plan" in names
    assert "1.plan" not in names
    assert fresh.size() <= 100_000


def test_an_entry_of_another_interface_is_made_again(folder, monkeypatch, caplog):
    from tenfold.execute import restored as module

    want = make()(x)
    plans.clear()
    monkeypatch.setattr(module, "interface", lambda: "another")
    assert np.array_equal(make()(x), want)
    assert "called in another way" in caplog.text
