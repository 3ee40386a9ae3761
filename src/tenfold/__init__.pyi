"""The public names as type checkers see them; `__init__.py` imports each when it is asked for."""

from typing import Final

from tenfold import prover as prover
from tenfold.api import random as random
from tenfold.api.backends import backends as backends, release_memory as release_memory
from tenfold.api.devices import device_put as device_put
from tenfold.api.explain_cache import explain_cache as explain_cache
from tenfold.api.jit import Jitted as Jitted, jit as jit
from tenfold.api.load import Loaded as Loaded, load as load
from tenfold.api.namespace import fft as fft, linalg as linalg
from tenfold.api.namespace.complexes import expm1 as expm1, tanh as tanh
from tenfold.api.namespace.constants import (
    bfloat16 as bfloat16,
    bool as bool,
    complex64 as complex64,
    complex128 as complex128,
    e as e,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    inf as inf,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    nan as nan,
    newaxis as newaxis,
    pi as pi,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)
from tenfold.api.namespace.creation import (
    arange as arange,
    asarray as asarray,
    empty as empty,
    empty_like as empty_like,
    eye as eye,
    from_dlpack as from_dlpack,
    full as full,
    full_like as full_like,
    linspace as linspace,
    meshgrid as meshgrid,
    ones as ones,
    ones_like as ones_like,
    tril as tril,
    triu as triu,
    zeros as zeros,
    zeros_like as zeros_like,
)
from tenfold.api.namespace.dtypes import (
    astype as astype,
    can_cast as can_cast,
    finfo as finfo,
    iinfo as iinfo,
    isdtype as isdtype,
    result_type as result_type,
)
from tenfold.api.namespace.elementwise import (
    abs as abs,
    acos as acos,
    acosh as acosh,
    add as add,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    bitwise_and as bitwise_and,
    bitwise_invert as bitwise_invert,
    bitwise_left_shift as bitwise_left_shift,
    bitwise_or as bitwise_or,
    bitwise_right_shift as bitwise_right_shift,
    bitwise_xor as bitwise_xor,
    ceil as ceil,
    clip as clip,
    conj as conj,
    copysign as copysign,
    cos as cos,
    cosh as cosh,
    divide as divide,
    equal as equal,
    exp as exp,
    floor as floor,
    floor_divide as floor_divide,
    greater as greater,
    greater_equal as greater_equal,
    hypot as hypot,
    imag as imag,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    less as less,
    less_equal as less_equal,
    log as log,
    log1p as log1p,
    log2 as log2,
    log10 as log10,
    logaddexp as logaddexp,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    matmul as matmul,
    maximum as maximum,
    minimum as minimum,
    multiply as multiply,
    negative as negative,
    nextafter as nextafter,
    not_equal as not_equal,
    positive as positive,
    pow as pow,
    real as real,
    reciprocal as reciprocal,
    remainder as remainder,
    round as round,
    sign as sign,
    signbit as signbit,
    sin as sin,
    sinh as sinh,
    sqrt as sqrt,
    square as square,
    subtract as subtract,
    tan as tan,
    trunc as trunc,
)
from tenfold.api.namespace.info import __array_namespace_info__ as __array_namespace_info__
from tenfold.api.namespace.manipulation import (
    broadcast_arrays as broadcast_arrays,
    broadcast_to as broadcast_to,
    concat as concat,
    expand_dims as expand_dims,
    flip as flip,
    matrix_transpose as matrix_transpose,
    moveaxis as moveaxis,
    permute_dims as permute_dims,
    repeat as repeat,
    reshape as reshape,
    roll as roll,
    squeeze as squeeze,
    stack as stack,
    tensordot as tensordot,
    tile as tile,
    unstack as unstack,
    vecdot as vecdot,
)
from tenfold.api.namespace.searching import (
    argmax as argmax,
    argmin as argmin,
    argsort as argsort,
    count_nonzero as count_nonzero,
    nonzero as nonzero,
    searchsorted as searchsorted,
    sort as sort,
    take as take,
    take_along_axis as take_along_axis,
    unique_all as unique_all,
    unique_counts as unique_counts,
    unique_inverse as unique_inverse,
    unique_values as unique_values,
    where as where,
)
from tenfold.api.namespace.statistics import (
    all as all,
    any as any,
    cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum,
    diff as diff,
    max as max,
    mean as mean,
    min as min,
    prod as prod,
    std as std,
    sum as sum,
    var as var,
)
from tenfold.api.parity import bisect as bisect, parity as parity
from tenfold.api.graphs import (
    evaluate as evaluate,
    parse as parse,
    trace as trace,
    trace_values as trace_values,
)
from tenfold.api.safetensors import load_safetensors as load_safetensors
from tenfold.config import config as config
from tenfold.errors import (
    ParityError as ParityError,
    ParityWarning as ParityWarning,
    TenfoldError as TenfoldError,
    TraceWarning as TraceWarning,
)
from tenfold.graph import Graph as Graph
from tenfold.stats import stats as stats
from tenfold.trace.array import Array as Array
from tenfold.trace.control.control import (
    cond as cond,
    fori_loop as fori_loop,
    map as map,
    reduce as reduce,
    scan as scan,
    switch as switch,
    while_loop as while_loop,
)
from tenfold.trace.control.custom import custom as custom
from tenfold.trace.control.effects import call_host as call_host, hook as hook, print as print
from tenfold.trace.surface.algebra.convolution import conv as conv
from tenfold.trace.surface.algebra.convolution import conv_transpose as conv_transpose
from tenfold.trace.surface.reducing.counting import bincount as bincount
from tenfold.trace.surface.shaping.creation import iota as iota
from tenfold.trace.surface.indexing.indexing import (
    dynamic_slice as dynamic_slice,
    dynamic_update as dynamic_update,
)
from tenfold.trace.surface.algebra.linalg import lu as lu
from tenfold.trace.surface.searching.reaching import reach as reach
from tenfold.trace.surface.searching.searching import top_k as top_k
from tenfold.trace.surface.indexing.sized import (
    argwhere as argwhere,
    compress as compress,
    flatnonzero as flatnonzero,
    unique as unique,
)
from tenfold.trace.surface.algebra.solving import triangular_solve as triangular_solve
from tenfold.trace.surface.numbers.special import (
    digamma as digamma,
    erf as erf,
    erf_inv as erf_inv,
    erfc as erfc,
    lgamma as lgamma,
    rsqrt as rsqrt,
    sigmoid as sigmoid,
)
from tenfold.trace.control.windows import reduce_window as reduce_window
from tenfold.trace.convert.convert import convert_control as convert_control
from tenfold.transform.vmap import vmap as vmap
from tenfold.types import TensorType as TensorType, spec as spec
from tenfold.version import __version__ as __version__

__array_api_version__: Final[str]
