"""What of CUDA lies on this machine beside the driver: looked for, never demanded.

A toolkit, NVIDIA's own wheels, or what Triton, CuPy and torch bring along will do. Nothing is
imported for it. A library is taken from a folder of LD_LIBRARY_PATH, wheels in Python's folders, a
toolkit, the system's own folders, in this order, the newest major version first that the driver can
serve. A variable of the environment is the file to take instead, or 'off'.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from glob import glob
from importlib.machinery import PathFinder

from tenfold.errors import ValueProblem
from tenfold.frozen import frozen

_TOOLKITS = ("CUDA_HOME", "CUDA_PATH")
_USUAL = ("/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda")
_WITHIN = ("lib64", "lib", "targets/*/lib", "bin/x64", "bin")  # of a toolkit
_WHEELS = ("nvidia/cu13/lib", "nvidia/cu13/bin/x86_64", "nvidia/{}/lib", "nvidia/{}/bin",
           "torch/lib")  # fmt: skip
_SYSTEM = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")
_OFF = ("0", "off", "no", "none")


@frozen
class Shared:
    """A library of CUDA's: what it is called, the name of its file, the folder that wheels have it
    in, the variable that names another, and its major version for each of CUDA's."""

    title: str
    file: str
    folder: str
    variable: str
    majors: tuple[tuple[int, int], ...]

    @property
    def wheel(self) -> str:
        return f"nvidia-{self.folder}"


CUBLAS = Shared("cublasLt", "cublasLt", "cublas", "TENFOLD_CUBLAS", ((13, 13), (12, 12)))
CUFFT = Shared("cuFFT", "cufft", "cufft", "TENFOLD_CUFFT", ((13, 12), (12, 11)))
CUSOLVER = Shared("cuSOLVER", "cusolver", "cusolver", "TENFOLD_CUSOLVER", ((13, 12), (12, 11)))
LIBRARIES = (CUBLAS, CUFFT, CUSOLVER)
NEWEST = max(cuda for cuda, _ in CUBLAS.majors)  # the version of CUDA that is known


def _toolkits() -> Iterator[str]:
    """The folders of toolkits, those that the environment names first, then the newest."""
    yield from (found for name in _TOOLKITS if (found := os.environ.get(name)))
    for pattern in _USUAL:
        yield from sorted(glob(pattern), reverse=True)


def _packages(name: str) -> list[str]:
    """The folders of a Python package that is not imported for it."""
    spec = PathFinder.find_spec(name)
    return list(spec.submodule_search_locations or ()) if spec else []


@cache
def find_ptxas() -> str | None:
    """NVIDIA's assembler, or None."""
    found = shutil.which("ptxas")
    if found:
        return found
    places = [os.path.join(folder, "bin") for folder in _toolkits()]
    for folder in _packages("nvidia"):  # its wheels: nvidia/cu13, nvidia/cuda_nvcc
        places += sorted(glob(os.path.join(folder, "*", "bin")), reverse=True)
    places += [os.path.join(f, "backends", "nvidia", "bin") for f in _packages("triton")]
    files = (os.path.join(place, "ptxas") for place in places)
    return next((file for file in files if os.access(file, os.X_OK)), None)


def folders(library: Shared) -> Iterator[str]:
    """Where a library may lie, in order."""
    yield from filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))
    wheels = [wheel.format(library.folder).split("/") for wheel in _WHEELS]
    for path in sys.path:
        yield from (os.path.join(path, *wheel) for wheel in wheels if path)
    for toolkit in _toolkits():
        for within in _WITHIN:
            yield from sorted(glob(os.path.join(toolkit, within)))
    yield from _SYSTEM


def files(library: Shared, newest: int, where: Sequence[str] | None = None) -> Iterator[str]:
    """The files that may be a library, for a driver that serves this major version of CUDA."""
    seen = list(dict.fromkeys(folders(library))) if where is None else where
    for cuda, major in library.majors:
        if cuda > newest:
            continue
        windows = sys.platform == "win32"
        name = f"{library.file}64_{major}.dll" if windows else f"lib{library.file}.so.{major}"
        paths = (os.path.join(folder, name) for folder in seen)
        yield from (path for path in paths if os.path.isfile(path))


def asked(library: Shared) -> str | None:
    """The file that the environment names for a library, "" where it is not to be used, None where
    nothing is said."""
    said = os.environ.get(library.variable, "")
    if said.lower() in _OFF:
        return ""
    if said and not os.path.isfile(said):
        raise ValueProblem(
            f"{library.variable} is {said!r}: there is no such file",
            fix=f"give the path of lib{library.file}.so, or 'off', or nothing",
        )
    return said or None


def find_library(library: Shared, newest: int = NEWEST) -> str | None:
    """The file of a library, or None."""
    said = asked(library)
    return next(files(library, newest), None) if said is None else said or None


def version_of(path: str) -> str:
    """The version of a library as its file's name has it, or the wheel that it came in; "" where
    neither does. To load a library for it would take long."""
    real = os.path.realpath(path)
    named = re.search(r"\.so\.(\d+\.\d+\.\d+)", real)
    if named:
        return named[1]
    folder = re.search(r"^(.*)[\\/]nvidia[\\/][^\\/]+[\\/](?:lib|bin)\b", real)
    name = re.search(r"(?:lib)?([a-z]+)", os.path.basename(real))
    if folder is None or name is None:
        return ""
    wheels = glob(os.path.join(folder[1], f"nvidia_{name[1]}*.dist-info"))
    form = re.compile(rf"nvidia_{name[1]}(?:_cu\d+)?-(\d+\.\d+\.\d+)[^-]*\.dist-info")
    found = (form.fullmatch(os.path.basename(wheel)) for wheel in sorted(wheels))
    return next((one[1] for one in found if one is not None), "")
