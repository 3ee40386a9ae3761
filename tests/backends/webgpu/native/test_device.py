"""What is used of wgpu-native: errors come with their reasons, and nothing outlives its owner."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tenfold.backends.webgpu.native import device as module
from tenfold.backends.webgpu.native import find, library
from tenfold.backends.webgpu.native import structs as s
from tenfold.backends.webgpu.native.adapter import adapter_of, adapters
from tenfold.backends.webgpu.native.buffer import Range
from tenfold.backends.webgpu.native.commands import Commands
from tenfold.backends.webgpu.native.device import Device
from tenfold.errors import DeviceMemoryProblem, DeviceProblem
from tests.backends.webgpu.here import needs_adapter
from tests.backends.webgpu.native.fresh import load_anew

pytestmark = needs_adapter

KINDS = (s.STORAGE_BINDING,)
DOUBLE = """
@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) me: vec3<u32>) {
    if (me.x < arrayLength(&a)) { a[me.x] = a[me.x] * 2u; }
}
"""


@pytest.fixture(scope="module")
def device() -> Device:
    return Device(adapter_of())


def test_a_shader_changes_memory(device: Device) -> None:
    given = np.arange(100, dtype=np.uint32)
    memory = device.range(given.nbytes)
    staging = device.buffer(given.nbytes, s.MAP_READ | s.COPY_TARGET)
    pipeline = device.pipeline(device.shader(DOUBLE), KINDS)
    group = device.bind_group(KINDS, [memory])
    made = np.empty_like(given)
    for n in range(1, 4):
        device.write(memory, given)
        commands = Commands(device)
        for _ in range(n):
            commands.dispatch(pipeline, group, (2, 1, 1))
        commands.copy(memory, staging, 0)
        commands.submit()
        device.reach(device.mark())
        device.read(staging, [(0, made)])
        np.testing.assert_array_equal(made, given << n)


def test_memory_begins_as_zeros_and_is_cleared(device: Device) -> None:
    memory, made = device.range(64), np.ones(16, np.uint32)
    staging = device.buffer(64, s.MAP_READ | s.COPY_TARGET)
    for clear in (False, True):
        commands = Commands(device)
        if clear:
            device.write(memory, made + 1)
            commands.clear(memory)
        commands.copy(memory, staging, 0)
        commands.submit()
        device.read(staging, [(0, made)])
        assert not made.any()


def test_what_is_no_shader(device: Device) -> None:
    with pytest.raises(DeviceProblem, match="expected identifier") as error:
        device.shader("fn main( {")
    assert "report the program" in str(error.value)
    device.shader(DOUBLE)  # nothing is left of the error


def test_memory_that_can_not_be_bound(device: Device) -> None:
    memory = device.range(64)
    with pytest.raises(DeviceProblem, match="offset 4 does not respect"):
        device.bind_group(KINDS, [memory.part(4, 16)])


def test_an_array_that_is_too_large(device: Device) -> None:
    with pytest.raises(DeviceMemoryProblem, match=r"is too large for .*, whose largest has \d+"):
        device.buffer(1 << 62)
    most = device.adapter.limits.buffer_bytes
    device.check_size(most // 4 * 4)
    with pytest.raises(DeviceMemoryProblem):
        device.check_size(most // 4 * 4 + 1)


def test_out_of_memory_is_told_as_such(device: Device) -> None:
    device.tell(s.OUT_OF_MEMORY, "Not enough memory left.")
    with pytest.raises(DeviceMemoryProblem, match="the GPU's memory does not suffice"):
        device.check("memory")
    device.check("memory")


def test_a_lost_device_says_so() -> None:
    own = Device(adapter_of())
    own.wgpu.DeviceDestroy(own.address)
    own.poll()
    with pytest.raises(DeviceProblem, match="the GPU is lost") as error:
        own.range(64)
    assert "start the process anew" in str(error.value)
    with pytest.raises(DeviceProblem, match="the GPU is lost"):
        Commands(own)


def test_owners_go_before_what_they_own() -> None:
    own = Device(adapter_of())
    memory = own.range(64)
    group = own.bind_group(KINDS, [memory])
    pipeline = own.pipeline(own.shader(DOUBLE), KINDS)
    del own, memory
    gc.collect()
    del group, pipeline


def test_ctrl_c_while_waiting(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def nap(_: float) -> None:
        nonlocal asked
        asked += 1
        if asked > 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "sleep", nap)
    with pytest.raises(KeyboardInterrupt):
        device.wait(lambda: False, "nothing")


INTERRUPTED = """
import os, signal, threading
import numpy as np
from tenfold.backends.webgpu.native import structs as s
from tenfold.backends.webgpu.native.adapter import adapter_of
from tenfold.backends.webgpu.native.commands import Commands
from tenfold.backends.webgpu.native.device import Device

device, kinds = Device(adapter_of()), (s.STORAGE_BINDING,)
slow = device.shader('''
@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(1) fn main() {
    var x = a[0];
    for (var i = 0u; i < 60000u; i++) { x = x * 1664525u + 1013904223u; }
    a[0] = x;
}''')
memory, staging = device.range(4), device.buffer(4, s.MAP_READ | s.COPY_TARGET)
pipeline, group = device.pipeline(slow, kinds), device.bind_group(kinds, [memory])
commands, made = Commands(device), np.zeros(1, np.uint32)
for _ in range(3000):
    commands.dispatch(pipeline, group, (1, 1, 1))
commands.copy(memory, staging, 0)
commands.submit()
device.poll = device.settle  # the answer is told in there, and Ctrl-C comes before it is
threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    device.read(staging, [(0, made)])
except KeyboardInterrupt:
    print("heard")
del staging, device.poll
staging = device.buffer(4, s.MAP_READ | s.COPY_TARGET)
commands = Commands(device)
commands.copy(memory, staging, 0)
commands.submit()
device.read(staging, [(0, made)])
assert made[0], made
"""


LET_GO = """
import ctypes, os, signal, threading
from tenfold.backends.webgpu.native.library import Handle

handle = Handle(300_000, ctypes.CDLL(None).usleep)  # the time that it takes to let go
threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    del handle
    while True:
        pass
except KeyboardInterrupt:
    print("heard")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no usleep here")
@pytest.mark.parametrize("code", [LET_GO, INTERRUPTED])
def test_ctrl_c_is_not_lost(code: str) -> None:
    """While something is let go of, or an answer is told."""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=100
    )
    assert (done.stdout, done.stderr) == ("heard\n", "")


def test_adapters_are_numbered() -> None:
    assert adapter_of(0) is adapters()[0]
    with pytest.raises(DeviceProblem, match="there is no adapter 99") as error:
        adapter_of(99)
    assert "0 (" in str(error.value)


def test_where_nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "find_spec", lambda name: None)
    load_anew(monkeypatch)
    with pytest.raises(DeviceProblem, match="wgpu-native is not installed") as error:
        library.library()
    assert "pip install wgpu" in str(error.value)


def test_a_library_that_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    damaged = tmp_path / "libwgpu.so"
    damaged.write_bytes(b"no library")
    load_anew(monkeypatch)
    monkeypatch.setattr(library, "library_path", lambda: damaged)
    with pytest.raises(DeviceProblem, match="can't be loaded"):
        library.library()


def test_a_library_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "MAJOR", 7)
    load_anew(monkeypatch)
    with pytest.raises(DeviceProblem, match="may have another interface than 7") as error:
        library.library()
    assert "pip install" in str(error.value)


def test_the_wheel_is_not_imported() -> None:
    assert find.library_path().is_file()
    code = (
        "import sys, tenfold as tn, numpy as np\n"
        "assert not any('webgpu' in name for name in sys.modules)\n"
        "f = tn.jit(lambda x: x + 1, backend='webgpu')\n"
        "assert f(np.ones(3)).sum() == 6\n"
        "assert 'wgpu' not in sys.modules and 'tenfold.backends.webgpu.probe' in sys.modules\n"
    )
    environment = {**os.environ, "TENFOLD_CACHE": "off"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


FORKED = """
import os, sys, warnings, numpy as np, tenfold as tn
warnings.simplefilter("ignore")
f = tn.jit(lambda x: x + 1, backend="webgpu")
x = np.ones(3, np.float32)
f(x)
if not os.fork():
    try:
        f(x)
    except tn.TenfoldError as error:
        sys.stdout.write(str(error) + "\\n")
        sys.stdout.flush()
        os._exit(3)
    os._exit(0)
status = os.waitstatus_to_exitcode(os.wait()[1])
assert status == 3, status
assert f(x).sum() == 6
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_the_child_of_a_fork_is_told() -> None:
    environment = {**os.environ, "TENFOLD_CACHE": "off"}
    said = subprocess.run(
        [sys.executable, "-c", FORKED], env=environment, check=True, capture_output=True, text=True
    ).stdout
    assert "WebGPU does not work in the child of a process that has used it" in said
    assert "spawn" in said


DECORATED = """
import os, numpy as np, tenfold as tn
f = tn.jit(lambda x: x + 1, backend="webgpu")
g = tn.jit(lambda x: x * 2, backend="webgpu:0", keep=True)
x = np.ones(3, np.float32)
if not os.fork():
    assert f(x).sum() == 6 and g(x).numpy().sum() == 6
    os._exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
assert f(x).sum() == 6
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_the_child_of_a_process_that_only_decorated() -> None:
    environment = {**os.environ, "TENFOLD_CACHE": "off"}
    subprocess.run([sys.executable, "-c", DECORATED], env=environment, check=True, timeout=100)


THREADED = """
import threading
from tenfold.backends.registry import backend_record
from tenfold.backends.webgpu import probe
from tenfold.backends.webgpu.native import adapter
made, real, begin = [], probe.Device, threading.Barrier(8)

class Counted(real):
    def __init__(self, *given):
        made.append(given)
        super().__init__(*given)

probe.Device = Counted
record, found = backend_record("webgpu"), []

def ask(number):
    begin.wait()
    found.append((probe.opened(*[0][: number % 2]), record.target(), adapter.adapters()))

threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
for one in threads:
    one.start()
for one in threads:
    one.join()
assert len(made) == 1, made
assert len(found) == 8 and all(a is found[0][0] and c is found[0][2] for a, _, c in found)
"""


def test_many_threads_open_one_device() -> None:
    subprocess.run([sys.executable, "-c", THREADED], check=True, timeout=100)


def test_ranges_say_where_they_begin(device: Device) -> None:
    whole = device.range(256)
    part = whole.part(64, 16).part(32, 8)
    assert isinstance(part, Range)
    assert part.key() == (id(whole.buffer), 96)
    assert part.size == 8
