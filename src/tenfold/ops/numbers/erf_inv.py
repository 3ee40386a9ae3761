"""erf_inv as x times a polynomial, as it compiles.

With w = -log(1 - x**2), erf_inv(x) / x is smooth in w, and in the square root of w far out. The
coefficients interpolate it at the Chebyshev points of each range, worked out with forty digits;
each table begins with the constant term, and its variable is counted from the middle of the
range. One set is good to double precision, the other to single.
"""

from __future__ import annotations

import math

from tenfold.ops.expression import Expression, polynomial, select
from tenfold.types import F64

# w below 6.25, around 3.125
_NEAR = (
    1.6536545626831027,
    0.2401581824255883,
    -0.00603367087142785,
    -0.000740702534154477,
    0.00018673420802464837,
    -1.3882523394405316e-05,
    -1.3654691850603575e-06,
    4.234788173782339e-07,
    -2.9070382262927266e-08,
    -4.11266082002324e-09,
    1.0512181539804126e-09,
    -5.414287198084716e-11,
    -1.2976885526532075e-11,
    2.6304834740560442e-12,
    -8.118399443074353e-14,
    -4.001237735091896e-14,
    6.596407712420834e-15,
    -4.0282154327661744e-17,
    -1.3016928016796445e-16,
    1.557432024623325e-17,
    1.150022252066253e-18,
    -3.4996044354754177e-19,
    -1.113483769832702e-21,
    3.240704459379902e-21,
)
# the square root of w, from 2.5 to 4, around 3.25
_MIDDLE = (
    3.0838856104922208,
    1.0052589676941592,
    0.0053709145535581985,
    -0.0037512085075638536,
    0.0024914420976198813,
    -0.0016882755561681802,
    0.0009532893521118177,
    -0.00035503751863069763,
    2.4031363245440546e-05,
    6.828484052292924e-05,
    -4.731952918337189e-05,
    1.2475343474376931e-05,
    2.9273722115986924e-06,
    -4.013946398190292e-06,
    1.4958263152984917e-06,
    1.832399988132858e-08,
    -2.6860975725571463e-07,
    9.071950571029922e-08,
    -3.831039946072411e-10,
)
# the square root of w, from 4 to 6.1, around 5
_FAR = (
    4.849906401408584,
    1.0103004648645413,
    -0.00013871931835112341,
    -0.00021503011962944126,
    7.599527735160192e-05,
    -1.968177348376382e-05,
    4.5260599477720725e-06,
    -9.930119183482954e-07,
    2.2901554497563463e-07,
    -6.761414811460412e-08,
    2.9124399186491765e-08,
    -1.5146221782627176e-08,
    7.644335983557396e-09,
    -3.5875995609819957e-09,
    1.4895546197648135e-09,
    -3.7171553416167447e-10,
    -2.2467591693364936e-11,
    2.752083669120488e-11,
)
# single precision: w below 5, around 2.5; its square root up to 4.1, around 3
_NEAR_SINGLE = (
    1.501409360450329,
    0.24664027905463662,
    -0.004177392875203149,
    -0.001252726391773229,
    0.00021834938623976644,
    -4.9724196894547514e-06,
    -3.4639852676333717e-06,
    4.6813134805534123e-07,
    2.3335967195708108e-08,
    -8.931925970244222e-09,
)
_FAR_SINGLE = (
    2.8329768070195414,
    1.0016749120571993,
    0.009444992113527836,
    -0.007636489636678905,
    0.005689216294342166,
    -0.0036009003307526993,
    0.001479703952923971,
    -5.045885289808411e-05,
    -0.00030552505117411146,
    0.0001115385807799795,
)


def erf_inv(x: Expression) -> Expression:
    """The formula of erf_inv, in float32 or float64."""
    one = x.number(1)
    w = -((one - x) * (one + x)).op("log")
    root = w.op("sqrt")
    if x.dtype == F64:
        far = select(root < 4, polynomial(root - 3.25, _MIDDLE), polynomial(root - 5, _FAR))
        ratio = select(w < 6.25, polynomial(w - 3.125, _NEAR), far)
    else:
        far = polynomial(root - 3, _FAR_SINGLE)
        ratio = select(w < 5, polynomial(w - 2.5, _NEAR_SINGLE), far)
    return x * select(w.equals(math.inf), math.inf, ratio)
