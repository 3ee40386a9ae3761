"""llvmlite's library, called without llvmlite's Python: to import that takes longer than to compile
a small program, and holds the GIL.

This is done where the version is one whose functions are known here, and where nobody has imported
llvmlite yet; elsewhere `assemble` goes by its public interface. Both give the same bytes.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_void_p
from functools import cache
from importlib.machinery import PathFinder
from typing import Any

from tenfold.backends.llvm.target import LLVMTarget

KNOWN = ("0.50.",)  # versions that have the functions below

# What a function gives and takes. The first ones take long, and are called without the GIL.
_LONG = {
    "InitializeAllTargetInfos": (None,),
    "InitializeAllTargets": (None,),
    "InitializeAllTargetMCs": (None,),
    "InitializeAllAsmPrinters": (None,),
    "ParseAssembly": (c_void_p, c_void_p, c_char_p, POINTER(c_char_p)),
    "RunNewModulePassManager": (None, c_void_p, c_void_p, c_void_p),
    "TargetMachineEmitToMemory": (c_void_p, c_void_p, c_void_p, c_int, POINTER(c_char_p)),
    "DisposeModule": (None, c_void_p),
}
_SHORT = {
    "GetTargetFromTriple": (c_void_p, c_char_p, POINTER(c_char_p)),
    "CreateTargetMachine": (
        *(c_void_p, c_void_p, c_char_p, c_char_p, c_char_p, c_int, c_char_p, c_char_p),
        *(c_int, c_int, c_char_p),
    ),
    "CreateTargetMachineData": (c_void_p, c_void_p),
    "CopyStringRepOfTargetData": (None, c_void_p, POINTER(c_char_p)),
    "ContextCreate": (c_void_p,),
    "ContextDispose": (None, c_void_p),
    "CreateNewModulePassManager": (c_void_p,),
    "module_AddAlwaysInlinerPass": (None, c_void_p),
    "module_AddInstCombinePass": (None, c_void_p),
    "module_AddDCEPass": (None, c_void_p),
    "module_AddSROAPass": (None, c_void_p),
    "module_AddSimplifyCFGPass": (None, c_void_p),
    "CreatePipelineTuningOptions": (c_void_p,),
    "CreatePassBuilder": (c_void_p, c_void_p, c_void_p),
    "DisposePassBuilder": (None, c_void_p),
    "GetBufferStart": (c_void_p, c_void_p),
    "GetBufferSize": (c_size_t, c_void_p),
    "DisposeMemoryBuffer": (None, c_void_p),
    "DisposeString": (None, c_char_p),
}


class LLVMLibrary:
    """The functions of the library, by their names without the prefix."""

    def __init__(self, path: str) -> None:
        if os.name == "posix":  # without the GIL; the others find it loaded
            ctypes.CDLL(None).dlopen(path.encode(), os.RTLD_NOW)
        loaded = (ctypes.CDLL(path), _LONG), (ctypes.PyDLL(path), _SHORT)
        for library, functions in loaded:
            for name, (gives, *takes) in functions.items():
                function = getattr(library, f"LLVMPY_{name}")
                function.restype, function.argtypes = gives, takes
                setattr(self, name, function)
        self.InitializeAllTargetInfos()
        self.InitializeAllTargets()
        self.InitializeAllTargetMCs()
        self.InitializeAllAsmPrinters()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def text(self, given: c_char_p) -> str:
        """A string of the library's, which is freed."""
        found = (given.value or b"").decode()
        self.DisposeString(given)
        return found


def library(version: str) -> LLVMLibrary | None:
    """The library of this version of llvmlite; None where its public interface is to be used."""
    if "llvmlite.binding" in sys.modules or not version.startswith(KNOWN):
        return None
    return _loaded()


@cache
def _loaded() -> LLVMLibrary | None:
    spec = PathFinder.find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return None
    path = os.path.join(os.path.dirname(spec.origin), "binding", "libllvmlite.so")
    try:
        return LLVMLibrary(path)
    except (OSError, AttributeError):  # another platform's name, or another build
        return None


class LibraryTools:
    """A machine that emits code and the passes: see `assemble`."""

    def __init__(self, library: LLVMLibrary, target: LLVMTarget, loops: bool) -> None:
        self._library = lib = library
        triple, text = target.triple.encode(), c_char_p()
        found = lib.GetTargetFromTriple(triple, byref(text))
        if not found:
            raise RuntimeError(lib.text(text))
        self._machine = lib.CreateTargetMachine(
            found, triple, target.cpu.encode(), target.features.encode(), 2, b"pic", b"small",
            0, 0, b"",
        )  # fmt: skip
        lib.CopyStringRepOfTargetData(lib.CreateTargetMachineData(self._machine), byref(text))
        layout = lib.text(text)
        self._head = f'target triple = "{target.triple}"\ntarget datalayout = "{layout}"\n'
        self._passes = lib.CreateNewModulePassManager()
        lib.module_AddAlwaysInlinerPass(self._passes)
        if loops:
            lib.module_AddSROAPass(self._passes)
            lib.module_AddInstCombinePass(self._passes)
            lib.module_AddSimplifyCFGPass(self._passes)
        lib.module_AddInstCombinePass(self._passes)
        lib.module_AddDCEPass(self._passes)
        self._tuning = lib.CreatePipelineTuningOptions()

    def assemble(self, text: str) -> bytes:
        lib, said = self._library, c_char_p()
        context = lib.ContextCreate()
        module = lib.ParseAssembly(context, (self._head + text).encode(), byref(said))
        try:
            if said:
                raise RuntimeError(f"LLVM IR parsing error\n{lib.text(said)}")
            builder = lib.CreatePassBuilder(self._machine, self._tuning)
            lib.RunNewModulePassManager(self._passes, module, builder)
            lib.DisposePassBuilder(builder)
            buffer = lib.TargetMachineEmitToMemory(self._machine, module, 1, byref(said))
            if not buffer:
                raise RuntimeError(lib.text(said))
            data = ctypes.string_at(lib.GetBufferStart(buffer), lib.GetBufferSize(buffer))
            lib.DisposeMemoryBuffer(buffer)
            return data
        finally:
            if module:
                lib.DisposeModule(module)
            lib.ContextDispose(context)
