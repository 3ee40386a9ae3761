"""Fit the polynomials of the maths functions, and write their table.

    python tools/fit_maths.py            # fit all, print the errors, write coefficients.py
    python tools/fit_maths.py log asin   # fit these, print the errors, write nothing

Each fit is a weighted minimax polynomial found by the Remez exchange, in mpmath at 60 digits: it
makes the largest |weight(x) · (f(x) - p(x))| as small as the degree allows. The weight turns the
polynomial's error into the relative error of the function that uses it, so the figure printed,
in ulp, is what the polynomial alone contributes; rounding while evaluating comes on top.

Coefficients must end as float32 or float64. Rounding them all at the end would spoil the fit, so
they are rounded one at a time, lowest power first, and the rest are fitted anew each time.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mpmath as mp

mp.mp.dps = 60
Function = Callable[[mp.mpf], mp.mpf]
LN2, PI = mp.log(2), mp.pi
HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "src/tenfold/kernel/maths/coefficients.py"


@dataclass(frozen=True, slots=True)
class Fit:
    """One polynomial: its name, the format of its coefficients, what it approximates and where."""

    name: str
    dtype: str
    count: int
    low: mp.mpf
    high: mp.mpf
    of: Function
    weight: Function
    fixed: tuple[mp.mpf, ...] = ()  # lowest coefficients given, not fitted
    bits: int = 0  # accuracy wanted of the result, where it is not that of the coefficients


def rounded(value: mp.mpf, dtype: str) -> float:
    """The float32 or float64 nearest to a value."""
    double = float(value)
    if dtype == "f64":
        return double
    return float(struct.unpack("<f", struct.pack("<f", double))[0])


def nodes(low: mp.mpf, high: mp.mpf, count: int) -> list[mp.mpf]:
    """Chebyshev's points, which crowd towards both ends."""
    middle, half = (low + high) / 2, (high - low) / 2
    return [middle - half * mp.cos((2 * i + 1) * PI / (2 * count)) for i in range(count)]


def extrema(errors: list[mp.mpf], wanted: int) -> list[int] | None:
    """Indices where the error peaks with alternating sign, the `wanted` largest in a row."""
    peaks: list[int] = []
    for i, error in enumerate(errors):
        if error == 0:
            continue
        if peaks and (errors[peaks[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[peaks[-1]]):
                peaks[-1] = i
        else:
            peaks.append(i)
    while len(peaks) > wanted:
        peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
    return peaks if len(peaks) == wanted else None


def remez(values: list[mp.mpf], weights: list[mp.mpf], powers: list[list[mp.mpf]]) -> list[mp.mpf]:
    """Coefficients of the minimax combination of the columns of `powers` on the given points."""
    count, total = len(powers[0]), len(values)
    chosen = [round((i + 0.5) * total / (count + 1)) for i in range(count + 1)]
    best: tuple[mp.mpf, list[mp.mpf]] | None = None
    for _ in range(25):
        rows = [
            [weights[i] * p for p in powers[i]] + [mp.mpf((-1) ** k)] for k, i in enumerate(chosen)
        ]
        solved = mp.lu_solve(mp.matrix(rows), mp.matrix([weights[i] * values[i] for i in chosen]))
        found = [solved[k] for k in range(count)]
        errors = [
            w * (v - mp.fdot(found, row)) for v, w, row in zip(values, weights, powers, strict=True)
        ]
        worst = max(abs(e) for e in errors)
        if best is None or worst < best[0]:
            best = (worst, found)
        peaks = extrema(errors, count + 1)
        if peaks is None or worst <= abs(solved[count]) * mp.mpf("1.01"):
            break
        chosen = peaks
    assert best is not None
    return best[1]


def run(fit: Fit) -> tuple[list[float], float]:
    """The rounded coefficients of a fit, lowest power first, and its error in ulp."""
    points = nodes(fit.low, fit.high, 40 * fit.count + 2)
    values = [fit.of(x) for x in points]
    weights = [fit.weight(x) for x in points]
    powers = [[x**k for k in range(fit.count)] for x in points]
    done = [rounded(c, fit.dtype) for c in fit.fixed]
    # Past these, one rounding's relative weight is far below an ulp of the result.
    exact = fit.count - 1 if fit.dtype == "f32" else min(4, fit.count - 1)
    while len(done) < fit.count:
        k = len(done)
        rest = [
            v - mp.fdot(done, row[:k]) if k else v for v, row in zip(values, powers, strict=True)
        ]
        found = remez(rest, weights, [row[k:] for row in powers])
        take = 1 if k < exact else len(found)
        done += [rounded(c, fit.dtype) for c in found[:take]]
    error = max(
        abs(w * (v - mp.fdot(done, row))) for v, w, row in zip(values, weights, powers, strict=True)
    )
    return done, float(error * 2 ** (fit.bits or (24 if fit.dtype == "f32" else 53)))


def expm1_tail(r: mp.mpf) -> mp.mpf:
    return (mp.expm1(r) - r) / r**2


def log1p_tail(f: mp.mpf) -> mp.mpf:
    return (mp.log1p(f) - f + f**2 / 2) / f**3


def atanh_tail(z: mp.mpf) -> mp.mpf:
    """atanh(s) = s + s z T(z), z = s²."""
    s = mp.sqrt(z)
    return (mp.atanh(s) - s) / (s * z)


def odd_tail(of: Function) -> Function:
    """T where f(x) = x + x z T(z), z = x²."""
    return lambda z: (of(mp.sqrt(z)) - mp.sqrt(z)) / (mp.sqrt(z) * z)


def odd_weight(of: Function) -> Function:
    return lambda z: mp.sqrt(z) * z / of(mp.sqrt(z))


def cos_tail(z: mp.mpf) -> mp.mpf:
    """cos(x) = 1 - z/2 + z² T(z)."""
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2


def erf_power(a: mp.mpf) -> mp.mpf:
    """erf(a) = 1 - exp(-a (1 + P(a))); the first term apart, for its rounding."""
    return -mp.log(mp.erfc(a)) / a - 1


def erf_weight(a: mp.mpf) -> mp.mpf:
    return a * mp.erfc(a) / mp.erf(a)


def erf_root(a: mp.mpf) -> mp.mpf:
    """erf(a) = 1 - R(a)⁴."""
    return mp.erfc(a) ** (mp.mpf(1) / 4)


def erf_root_weight(a: mp.mpf) -> mp.mpf:
    return 4 * mp.erfc(a) / (erf_root(a) * mp.erf(a))


def scaled_erfc(pivot: int) -> Function:
    """erfc(a) exp(a²) (1 + 2a) as a function of t = (a - pivot) / (a + pivot)."""

    def of(t: mp.mpf) -> mp.mpf:
        a = pivot * (1 + t) / (1 - t)
        with mp.workdps(80 + int(a * a)):
            return mp.erfc(a) * mp.exp(a * a) * (1 + 2 * a)

    return of


def parts(value: mp.mpf, dtype: str, *bits: int) -> tuple[float, ...]:
    """A constant cut into floats of so many bits each, 0 for as many as the format has."""
    cut = []
    for count in bits:
        width = count or (24 if dtype == "f32" else 53)
        scale = mp.mpf(2) ** (width - 1 - mp.floor(mp.log(abs(value), 2)))
        cut.append(rounded(mp.nint(value * scale) / scale, dtype))
        value -= cut[-1]
    return tuple(cut)


def constants() -> dict[tuple[str, str], tuple[float, ...]]:
    """Constants in parts. Short first parts have exact products with exponents or multiples."""
    found = {}
    for dtype, short in (("f32", 15), ("f64", 32)):
        found["ln2", dtype] = parts(LN2, dtype, short, 0)
        found["log10_2", dtype] = parts(mp.log10(2), dtype, short, 0)
        found["log2_e", dtype] = parts(1 / LN2, dtype, 0, 0)
        found["log10_e", dtype] = parts(1 / mp.log(10), dtype, 0, 0)
        found["half_pi", dtype] = parts(PI / 2, dtype, 0, 0, 0)
    found["half_pi_short", "f64"] = parts(PI / 2, "f64", 32, 32, 32, 0)
    found["third", "f64"] = parts(mp.mpf(1) / 3, "f64", 0, 0)
    return found


def reciprocal(of: Function) -> Function:
    return lambda x: 1 / of(x)


def all_fits() -> list[Fit]:
    half_ln2 = LN2 / 2 * mp.mpf("1.0001")
    root = mp.sqrt(2)
    s_max = ((root - 1) / (root + 1)) ** 2 * mp.mpf("1.0001")
    quarter = (PI / 4) ** 2 * mp.mpf("1.001")
    return [
        *(
            Fit(
                "expm1",
                t,
                n,
                -half_ln2,
                half_ln2,
                expm1_tail,
                lambda r: abs(r**2 / mp.expm1(r)),
                (mp.mpf(0.5),),
            )
            for t, n in (("f32", 5), ("f64", 11))
        ),
        Fit("log", "f32", 9, 1 / root - 1, root - 1, log1p_tail, lambda f: abs(f**3 / mp.log1p(f))),
        # 2s + s z T(z): T is fitted for atanh and doubled where it is used.
        Fit("log", "f64", 7, mp.mpf(0), s_max, atanh_tail, odd_weight(mp.atanh)),
        *(
            Fit("sin", t, n, mp.mpf(0), quarter, odd_tail(mp.sin), odd_weight(mp.sin))
            for t, n in (("f32", 3), ("f64", 6))
        ),
        *(
            Fit("cos", t, n, mp.mpf(0), quarter, cos_tail, lambda z: z**2 / mp.cos(mp.sqrt(z)))
            for t, n in (("f32", 3), ("f64", 6))
        ),
        *(
            Fit("tanh", t, n, mp.mpf(0), mp.mpf("0.3907"), odd_tail(mp.tanh), odd_weight(mp.tanh))
            for t, n in (("f32", 5), ("f64", 12))
        ),
        Fit("sinh", "f64", 8, mp.mpf(0), mp.mpf(1), odd_tail(mp.sinh), odd_weight(mp.sinh)),
        *(
            Fit("atan", t, n, mp.mpf(0), mp.mpf(1), odd_tail(mp.atan), odd_weight(mp.atan))
            for t, n in (("f32", 9), ("f64", 20))
        ),
        *(
            Fit("asin", t, n, mp.mpf(0), mp.mpf("0.2501"), odd_tail(mp.asin), odd_weight(mp.asin))
            for t, n in (("f32", 5), ("f64", 12))
        ),
        # erf of float32: x + x P(x²) up to 1, farther off the fourth power of a polynomial. Each
        # is to be the lesser where the other counts: the last coefficient of P is negative.
        Fit(
            "erf_near",
            "f32",
            6,
            mp.mpf(0),
            mp.mpf(1),
            lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
            lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)),
        ),
        Fit("erf_far", "f32", 9, mp.mpf(1), mp.mpf(4), erf_root, erf_root_weight),
        Fit("erf", "f64", 25, mp.mpf(0), mp.mpf(6), erf_power, erf_weight),
        *(
            Fit(
                "erfc",
                t,
                n,
                mp.mpf(-1),
                (mp.mpf(top) - k) / (top + k),
                scaled_erfc(k),
                reciprocal(scaled_erfc(k)),
            )
            for t, n, top, k in (("f32", 11, 11, 4), ("f64", 25, 28, 4))
        ),
        # pow's logarithm: log2(1+f) = f P(f) for float32 (computed in float64), atanh's
        # tail from the second term on for float64 (the first is kept in two parts).
        Fit(
            "pow_log2",
            "f32",
            15,
            1 / root - 1,
            root - 1,
            lambda f: mp.log1p(f) / f / LN2,
            lambda f: f * LN2 / mp.log1p(f),
            (),
            37,
        ),
        Fit(
            "pow_exp2",
            "f32",
            7,
            mp.mpf(-0.5),
            mp.mpf(0.5),
            lambda r: mp.mpf(2) ** r,
            lambda r: mp.mpf(2) ** -r,
            (mp.mpf(1),),
            24,
        ),
        Fit(
            "pow_log",
            "f64",
            8,
            mp.mpf(0),
            s_max,
            lambda z: (atanh_tail(z) - mp.mpf(1) / 3) / z,
            lambda z: mp.sqrt(z) * z**2 / mp.atanh(mp.sqrt(z)),
            (),
            66,
        ),
        Fit("cbrt", "f64", 5, mp.mpf(1), mp.mpf(2), mp.cbrt, lambda x: 1 / mp.cbrt(x), (), 16),
    ]


# Fits for float32 results that are evaluated in float64 and keep coefficients of that width.
WIDE = {("pow_log2", "f32"), ("pow_exp2", "f32"), ("erfc", "f32")}

HEADER = '''"""Coefficients of the maths functions' polynomials, lowest power first, and constants.

Written by tools/fit_maths.py, which says what each one approximates; do not edit.
"""

TABLE: dict[tuple[str, str], tuple[float, ...]] = {
'''


def main(names: list[str]) -> None:
    text = [HEADER]
    for fit in all_fits():
        if names and fit.name not in names:
            continue
        key = (fit.name, fit.dtype)
        if key in WIDE:
            wide = Fit(
                fit.name,
                "f64",
                fit.count,
                fit.low,
                fit.high,
                fit.of,
                fit.weight,
                fit.fixed,
                fit.bits or 24,
            )
            found, error = run(wide)
        else:
            found, error = run(fit)
        bits = fit.bits or (24 if fit.dtype == "f32" else 53)
        print(
            f"{fit.name:12} {fit.dtype} {fit.count:3} coefficients  error {error:9.2e} x 2^-{bits}",
            flush=True,
        )
        if names:
            print("   ", found)
        text.append(f'    ("{fit.name}", "{fit.dtype}"): (  # off by {error:.1e} × 2^-{bits}\n')
        text += [f"        {c!r},\n" for c in found]
        text.append("    ),\n")
    for (name, dtype), cut in constants().items():
        text.append(f'    ("{name}", "{dtype}"): (\n')
        text += [f"        {c!r},\n" for c in cut]
        text.append("    ),\n")
    text.append("}\n")
    if not names:
        OUT.write_text("".join(text))


if __name__ == "__main__":
    main(sys.argv[1:])
