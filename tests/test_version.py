"""What counts as the code that a plan was made by."""

from __future__ import annotations

import compileall
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import tenfold
from tenfold import version
from tenfold.backends.cpu.link.loader import route
from tenfold.version import digest, remembered, source, state_of, versions

PACKAGE = Path(tenfold.__file__).parent


def installed(folder: Path) -> Path:
    """A copy of the package, as one that was installed."""
    place = folder / "site-packages" / "tenfold"
    shutil.copytree(PACKAGE, place, ignore=shutil.ignore_patterns("__pycache__"))
    return place


def altered(path: Path, before: str, after: str) -> None:
    """Change a file but neither its size nor its time stamps."""
    state = path.stat()
    text = path.read_text()
    assert before in text
    assert len(before) == len(after)
    path.write_text(text.replace(before, after, 1))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def test_every_installation_has_a_source(tmp_path):
    assert versions()["source"] == source() == digest(str(PACKAGE))
    assert digest(str(installed(tmp_path))) == source()
    assert digest(str(tmp_path / "nowhere")) == ""
    assert digest(str(tmp_path / "a"), str(tmp_path / "nowhere.zip")) == ""


@pytest.mark.parametrize(
    "name",
    [
        "parity/rule/bounds.py",
        "reference/evaluate.py",
        "plan/fusion/fuse.py",
        "ops/rules.py",
        "types.py",
    ],
)
def test_content_decides(tmp_path, name):
    place = installed(tmp_path)
    altered(place / name, "return", "retrun")
    assert digest(str(place)) != source()
    altered(place / name, "retrun", "return")
    assert digest(str(place)) == source()


def test_names_count_and_time_stamps_do_not(tmp_path):
    place = installed(tmp_path)
    os.utime(place / "types.py", (0, 0))
    (place / "ops" / "notes.txt").write_text("no code")
    altered(place / "cli" / "__init__.py", "import", "improt")  # it only uses the rest
    assert digest(str(place)) == source()
    os.rename(place / "types.py", place / "tpyes.py")
    assert digest(str(place)) != source()


def test_compiled_files_alone(tmp_path):
    place = installed(tmp_path)
    compileall.compile_dir(place, quiet=1, legacy=True)
    for path in place.rglob("*.py"):
        path.unlink()
    before = digest(str(place))
    assert before not in ("", source())
    (place / "plan" / "fuse.pyc").write_bytes(b"another")
    assert digest(str(place)) not in ("", before)


class Notes(dict):
    """A memory."""

    def find(self, state):
        return self.get(state)

    def keep(self, state, digest):
        self[state] = digest


@pytest.mark.skipif(os.name != "posix", reason="elsewhere files have no time of their last change")
def test_files_that_nobody_wrote_to_are_not_read_again(tmp_path, monkeypatch):
    place, notes = installed(tmp_path), Notes()
    assert state_of(str(place)) is None  # its files are new: who knows what is written next
    assert remembered(str(place), notes) == source()
    assert not notes
    monkeypatch.setattr(version, "_MOMENT", 0)
    assert remembered(str(place), notes) == source()
    with monkeypatch.context() as patch:
        patch.setattr(version, "digest", None)
        assert remembered(str(place), notes) == source()
    assert list(notes.values()) == [source()]
    altered(place / "types.py", "return", "retrun")  # the same size and time stamps
    assert remembered(str(place), notes) == digest(str(place)) != source()
    altered(place / "types.py", "retrun", "return")
    os.rename(place / "types.py", place / "tpyes.py")
    assert remembered(str(place), notes) == digest(str(place)) != source()
    assert len(notes) == 3
    assert remembered(str(tmp_path / "nowhere"), notes) == ""


@pytest.mark.skipif(os.name != "posix", reason="elsewhere files have no time of their last change")
def test_what_is_written_while_files_are_read_is_not_remembered(tmp_path, monkeypatch):
    place, notes = installed(tmp_path), Notes()
    monkeypatch.setattr(version, "_MOMENT", 0)
    read = version.digest

    def reading(package):
        found = read(package)
        altered(place / "types.py", "return", "retrun")
        return found

    monkeypatch.setattr(version, "digest", reading)
    assert remembered(str(place), notes) == source()
    assert not notes


SCRIPT = """
import numpy as np, tenfold as tn
print(tn.__file__, tn.jit(lambda x: x * 2 + 1)(np.ones(3)), tn.stats()["cache_misses"])
"""


def misses(place: Path, cache: Path) -> int:
    """How many plans a process makes anew that imports the package from here."""
    environment = {**os.environ, "TENFOLD_CACHE": str(cache), "PYTHONPATH": str(place)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(str(place))
    assert "[3. 3. 3.]" in done.stdout
    return int(done.stdout.split()[-1])


@pytest.mark.skipif(route() != "elf", reason="code is loaded from files on Linux only")
def test_installations_of_one_number_share_plans_only_where_their_code_is_one(tmp_path):
    cache = tmp_path / "cache"
    first, second = (installed(tmp_path / name).parent for name in ("first", "second"))
    archive = tmp_path / "tenfold.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(first.rglob("*.py*")):
            file.write(path, path.relative_to(first))
    assert [misses(first, cache), misses(first, cache)] == [1, 0]
    assert misses(second, cache) == 0
    altered(second / "tenfold" / "parity" / "rule" / "bounds.py", '"""', "'''")
    altered(second / "tenfold" / "parity" / "rule" / "bounds.py", '"""', "'''")
    assert misses(second, cache) == 1
    assert [misses(archive, cache), misses(archive, cache)] == [1, 0]
