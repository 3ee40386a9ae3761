"""Constants: the dtypes by name, and the numbers that the standard names."""

import math

from tenfold.types import DTYPES

bool = DTYPES["bool"]
int8 = DTYPES["i8"]
int16 = DTYPES["i16"]
int32 = DTYPES["i32"]
int64 = DTYPES["i64"]
uint8 = DTYPES["u8"]
uint16 = DTYPES["u16"]
uint32 = DTYPES["u32"]
uint64 = DTYPES["u64"]
float16 = DTYPES["f16"]
bfloat16 = DTYPES["bf16"]
float32 = DTYPES["f32"]
float64 = DTYPES["f64"]
complex64 = DTYPES["c64"]
complex128 = DTYPES["c128"]

e = math.e
inf = math.inf
nan = math.nan
pi = math.pi
newaxis = None
