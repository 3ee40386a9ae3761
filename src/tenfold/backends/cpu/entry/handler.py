"""Arrays over memory that is kept, as LLVM IR: NumPy's protocol of data allocators (NEP 49).

`ptr @tn_new_large(ptr dtype, i32 rank, ptr dims, i64 bytes)` makes an array as NumPy's own function
does, with an error set where it can't. It owns its data, and names who frees and resizes it: the
functions of `tn_handler`, NumPy's record of an allocator, which have to outlive every such array.
tracemalloc is told as NumPy tells it. `tn_new_again` is for an array that NumPy had no memory for:
what rests is given back, then NumPy tries once more.
"""

from __future__ import annotations

from tenfold.backends.cpu.entry import ndarray as nd
from tenfold.backends.cpu.entry.kept import SMALL, kept_word
from tenfold.backends.cpu.entry.kept_memory import KeptWord
from tenfold.backends.cpu.entry.record import load_field
from tenfold.backends.llvm.text import Fragment

NAME = "tenfold"  # what NumPy calls the allocator
CAPSULE_NAME = "mem_handler"  # what it wants its capsule to be called
_NAME_BYTES = 127
_VERSION = 1  # of the protocol
_DOMAIN = 389047  # NumPy's, in tracemalloc
_FLAGS = nd.CONTIGUOUS | nd.ALIGNED | nd.WRITEABLE


def _characters(text: str, length: int) -> str:
    zeros = "\\00" * (length - len(text))
    return f'[{length} x i8] c"{text}{zeros}"'


_MAKE = f"""
define internal ptr @tn_new_large(ptr %dtype, i32 %rank, ptr %dims, i64 %bytes) {SMALL} {{
  %data = call ptr @tn_kept_take(i64 %bytes)
  %none = icmp eq ptr %data, null
  br i1 %none, label %plain, label %over
plain: ; NumPy finds memory, or says what there is none for
  %own = call ptr @tn_new_array(ptr @tn_ndarray, ptr %dtype, i32 %rank, ptr %dims, ptr null,
      ptr null, i32 0, ptr null)
  ret ptr %own
over:
  %array = call ptr @tn_new_array(ptr @tn_ndarray, ptr %dtype, i32 %rank, ptr %dims, ptr null,
      ptr %data, i32 {_FLAGS}, ptr null)
  %failed = icmp eq ptr %array, null
  br i1 %failed, label %give, label %own.it
own.it:
{load_field("%flags", "i32", "%array", nd.FLAGS)}
  %owned = or i32 %flags, {nd.OWNDATA}
  store i32 %owned, ptr %flags.at, align 4
{kept_word("%capsule", KeptWord.CAPSULE)}
  %handler = inttoptr i64 %capsule to ptr
  call void @Py_IncRef(ptr %handler)
  %handler.at = getelementptr i8, ptr %array, i64 {nd.HANDLER}
  store ptr %handler, ptr %handler.at, align 8
  %address = ptrtoint ptr %data to i64
  %told = call i32 @PyTraceMalloc_Track(i32 {_DOMAIN}, i64 %address, i64 %bytes)
  %untold = icmp eq i32 %told, -1
  br i1 %untold, label %drop, label %made
made:
  ret ptr %array
drop:
  call void @Py_DecRef(ptr %array)
  %nothing = call ptr @PyErr_NoMemory()
  ret ptr null
give:
  call void @tn_kept_give(ptr %data)
  ret ptr null
}}

define internal ptr @tn_new_again(ptr %dtype, i32 %rank, ptr %dims) {SMALL} {{
  %given.back = call i64 @tn_kept_shrink(i64 0)
  %none = icmp eq i64 %given.back, 0
  br i1 %none, label %failed, label %again
again:
  call void @PyErr_Clear()
  call void @Py_IncRef(ptr %dtype)
  %array = call ptr @tn_new_array(ptr @tn_ndarray, ptr %dtype, i32 %rank, ptr %dims, ptr null,
      ptr null, i32 0, ptr null)
  ret ptr %array
failed:
  ret ptr null
}}
"""

# A block keeps its place while it is at least half used. NumPy never asks for nothing.
_ALLOCATOR = f"""
define internal ptr @tn_handler_malloc(ptr %ignored, i64 %bytes) {SMALL} {{
  %data = call ptr @tn_kept_take(i64 %bytes)
  ret ptr %data
}}

define internal ptr @tn_handler_calloc(ptr %ignored, i64 %count, i64 %size) {SMALL} {{
  %product = call {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64 %count, i64 %size)
  %bytes = extractvalue {{ i64, i1 }} %product, 0
  %beyond = extractvalue {{ i64, i1 }} %product, 1
  br i1 %beyond, label %failed, label %take
take:
  %data = call ptr @tn_kept_take(i64 %bytes)
  %none = icmp eq ptr %data, null
  br i1 %none, label %failed, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %data, i8 0, i64 %bytes, i1 false)
  ret ptr %data
failed:
  ret ptr null
}}

define internal ptr @tn_handler_realloc(ptr %ignored, ptr %old, i64 %bytes) {SMALL} {{
  %room = call i64 @tn_block_bytes(ptr %old)
  %half = lshr i64 %room, 1
  %fits = icmp ule i64 %bytes, %room
  %filled = icmp uge i64 %bytes, %half
  %stays = and i1 %fits, %filled
  br i1 %stays, label %same, label %take
same:
  ret ptr %old
take:
  %new = call ptr @tn_kept_take(i64 %bytes)
  %none = icmp eq ptr %new, null
  br i1 %none, label %failed, label %move
move:
  %both = call i64 @llvm.umin.i64(i64 %bytes, i64 %room)
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %old, i64 %both, i1 false)
  call void @tn_kept_give(ptr %old)
  ret ptr %new
failed:
  ret ptr null
}}

define internal void @tn_handler_free(ptr %ignored, ptr %data, i64 %bytes) {SMALL} {{
  %none = icmp eq ptr %data, null
  br i1 %none, label %done, label %give
give:
  call void @tn_kept_give(ptr %data)
  ret void
done:
  ret void
}}
"""

_RECORD = f"""
@tn_handler_name = dso_local constant {_characters(CAPSULE_NAME, len(CAPSULE_NAME) + 1)}
@tn_handler = dso_local global {{ [{_NAME_BYTES} x i8], i8, ptr, ptr, ptr, ptr, ptr }} {{
  {_characters(NAME, _NAME_BYTES)}, i8 {_VERSION}, ptr null, ptr @tn_handler_malloc,
  ptr @tn_handler_calloc, ptr @tn_handler_realloc, ptr @tn_handler_free }}, align 64
"""

HANDLER = Fragment(
    (
        "@tn_ndarray = external global i8",
        "declare ptr @tn_new_array(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)",
        "declare i32 @PyTraceMalloc_Track(i32, i64, i64)",
        "declare ptr @PyErr_NoMemory()",
        "declare void @PyErr_Clear()",
        "declare void @Py_IncRef(ptr)",
        "declare void @Py_DecRef(ptr)",
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        "declare i64 @llvm.umin.i64(i64, i64)",
        "declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)",
    ),
    _RECORD + _MAKE + _ALLOCATOR,
)
