"""Where libraries of CUDA are found, and which version they are of."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tenfold.backends.cuda import find
from tenfold.backends.cuda.find import (
    CUBLAS,
    CUFFT,
    CUSOLVER,
    LIBRARIES,
    files,
    folders,
    version_of,
)
from tenfold.backends.registry import backend_record
from tenfold.errors import ValueProblem


def test_the_newest_that_the_driver_serves_comes_first(tmp_path: Path) -> None:
    places = [tmp_path / "one", tmp_path / "two"]
    for folder, major in zip(places, (12, 13), strict=True):
        folder.mkdir()
        (folder / f"libcublasLt.so.{major}").touch()
    where = [str(folder) for folder in places]
    names = [os.path.basename(path) for path in files(CUBLAS, 13, where)]
    assert names == ["libcublasLt.so.13", "libcublasLt.so.12"]
    assert [os.path.basename(path) for path in files(CUBLAS, 12, where)] == ["libcublasLt.so.12"]
    assert list(files(CUBLAS, 11, where)) == []


@pytest.mark.parametrize("library", [CUFFT, CUSOLVER])
def test_others_count_their_versions_apart(library: Any, tmp_path: Path) -> None:
    for major in (11, 12, 13):
        (tmp_path / f"lib{library.file}.so.{major}").touch()
    names = [path[-2:] for path in files(library, 13, [str(tmp_path)])]
    assert names == ["12", "11"]
    assert [path[-2:] for path in files(library, 12, [str(tmp_path)])] == ["11"]


def test_wheels_and_the_linkers_path_are_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "site" / "nvidia" / "cufft" / "lib"
    for wheel, name in ((own.parents[1] / "cu13" / "lib", "cublasLt.so.13"), (own, "cufft.so.12")):
        wheel.mkdir(parents=True)
        (wheel / f"lib{name}").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "own"))
    assert next(folders(CUBLAS)) == str(tmp_path / "own")
    assert str(own.parents[1] / "cu13" / "lib" / "libcublasLt.so.13") in list(files(CUBLAS, 13))
    assert str(own / "libcufft.so.12") in list(files(CUFFT, 13))


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_environment_may_name_a_file_or_none(
    library: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(library.variable, "off")
    assert find.find_library(library) is None
    monkeypatch.setenv(library.variable, str(tmp_path / "none.so"))
    with pytest.raises(ValueProblem, match="there is no such file"):
        find.find_library(library)
    said = backend_record("cuda").absent()[library.title]
    assert "there is no such file" in said
    (tmp_path / "none.so").touch()
    assert find.find_library(library) == str(tmp_path / "none.so")


def test_a_version_is_read_off_a_file_or_its_wheel(tmp_path: Path) -> None:
    toolkit = tmp_path / "cuda" / "lib64"
    toolkit.mkdir(parents=True)
    (toolkit / "libcufft.so.12.0.0.61").touch()
    (toolkit / "libcufft.so.12").symlink_to("libcufft.so.12.0.0.61")
    assert version_of(str(toolkit / "libcufft.so.12")) == "12.0.0"
    wheel = tmp_path / "site" / "nvidia" / "cu13" / "lib"
    wheel.mkdir(parents=True)
    (wheel / "libcusolver.so.12").touch()
    assert version_of(str(wheel / "libcusolver.so.12")) == ""
    (tmp_path / "site" / "nvidia_cusolver-12.0.4.66.dist-info").mkdir()
    (tmp_path / "site" / "nvidia_cusolvermp-0.6.0.1.dist-info").mkdir()
    assert version_of(str(wheel / "libcusolver.so.12")) == "12.0.4"
    older = tmp_path / "site" / "nvidia" / "cufft" / "lib"
    older.mkdir(parents=True)
    (older / "libcufft.so.11").touch()
    (tmp_path / "site" / "nvidia_cufft_cu12-11.3.0.4.dist-info").mkdir()
    assert version_of(str(older / "libcufft.so.11")) == "11.3.0"
