"""Signals, images and series."""

import numpy as np
from wild.wild import wild


@wild(lambda r: (r.random((3, 14, 15)).astype("f4"), r.normal(size=(4, 3, 3, 3)).astype("f4")))
def convolution_by_windows(image, filters):
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(1, 2))
    return np.maximum(np.einsum("cijyx,ocyx->oij", windows, filters), 0)


@wild(lambda r: (r.normal(size=256),))
def low_pass(signal):
    spectrum = np.fft.rfft(signal)
    spectrum[20:] = 0
    return np.fft.irfft(spectrum, n=signal.shape[0])


@wild(lambda r: (r.normal(size=(24, 24)),))
def band_power(image):
    power = np.abs(np.fft.fftshift(np.fft.fft2(image))) ** 2
    y, x = np.indices(image.shape)
    radius = np.hypot(y - 12, x - 12).astype(int)
    total = np.bincount(radius.ravel(), minlength=18)
    binned = np.zeros_like(power, shape=18)
    np.add.at(binned, radius, power)
    return binned / total


@wild(lambda r: (r.random((20, 22)), 1.5))
def gaussian_blur(image, sigma):
    offsets = np.arange(-4, 5)
    kernel = np.exp(-(offsets**2) / (2 * sigma**2))
    kernel = kernel / kernel.sum()
    padded = np.pad(image, 4, mode="edge")
    rows = sum(kernel[k] * padded[k : k + image.shape[0]] for k in range(9))
    return sum(kernel[k] * rows[:, k : k + image.shape[1]] for k in range(9))


@wild(lambda r: ((r.normal(100, 25, (32, 30)).clip(0, 255)).astype("u1"),))
def histogram_equalisation(image):
    counts = (image.ravel()[:, None] == np.arange(256)).sum(axis=0)
    running = np.cumsum(counts)
    lowest = np.min(np.where(running > 0, running, image.size))
    table = np.round((running - lowest) / (image.size - lowest) * 255)
    return np.clip(table, 0, 255).astype(np.uint8)[image]


@wild(lambda r: (r.random((18, 19)),))
def sobel(image):
    p = np.pad(image, 1, mode="reflect")
    dx = p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2 * p[1:-1, :-2] - p[2:, :-2]
    dy = p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2 * p[:-2, 1:-1] - p[:-2, 2:]
    return np.hypot(dx, dy), np.arctan2(dy, dx)


@wild(lambda r: (r.normal(size=12), r.normal(size=10)))
def dynamic_time_warping(a, b):
    cost = np.abs(a[:, None] - b[None])
    total = np.full_like(cost, np.inf, shape=(len(a) + 1, len(b) + 1))
    total[0, 0] = 0
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            best = np.minimum(np.minimum(total[i - 1, j], total[i, j - 1]), total[i - 1, j - 1])
            total[i, j] = cost[i - 1, j - 1] + best
    return total[-1, -1], total


@wild(lambda r: (np.cumsum(r.normal(size=200)) + 100, 10), static=("width",))
def moving_averages(prices, width):
    total = np.cumsum(np.concatenate([[0.0], prices]))
    simple = (total[width:] - total[:-width]) / width
    smooth = [prices[0]]
    for price in prices[1:40]:
        smooth.append(0.1 * price + 0.9 * smooth[-1])
    return simple, np.stack(smooth), np.convolve(prices, np.ones(width) / width, mode="valid")


@wild(lambda r: (r.normal(0.0005, 0.01, (250, 4)),))
def cumulative_returns(returns):
    wealth = np.cumprod(1 + returns, axis=0)
    peak = np.maximum.accumulate(wealth, axis=0)
    drawdown = (wealth / peak - 1).min(axis=0)
    return wealth[-1] - 1, drawdown, returns.mean(0) / returns.std(0) * np.sqrt(252)


@wild(lambda r: (r.uniform(50, 150, 100), r.uniform(50, 150, 100), r.uniform(0.1, 2, 100), 0.02))
def black_scholes(spot, strike, years, rate):
    vol = 0.3

    def normal(x):  # Abramowitz and Stegun 26.2.17
        t = 1 / (1 + 0.2316419 * np.abs(x))
        poly = t * (
            0.319381530
            + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429)))
        )
        tail = np.exp(-x * x / 2) / np.sqrt(2 * np.pi) * poly
        return np.where(x > 0, 1 - tail, tail)

    d1 = (np.log(spot / strike) + (rate + vol**2 / 2) * years) / (vol * np.sqrt(years))
    d2 = d1 - vol * np.sqrt(years)
    call = spot * normal(d1) - strike * np.exp(-rate * years) * normal(d2)
    return call, call - spot + strike * np.exp(-rate * years)


@wild(lambda r: (r.normal(size=(40, 2)), np.eye(4), np.eye(2) * 0.3))
def kalman_filter(measured, p, noise):
    f = np.eye(4) + np.diag([1.0, 1.0], 2)
    h = np.eye(2, 4)
    x = np.zeros(4)
    track = []
    for z in measured:
        x = f @ x
        p = f @ p @ f.T + 0.01 * np.eye(4)
        gain = p @ h.T @ np.linalg.inv(h @ p @ h.T + noise)
        x = x + gain @ (z - h @ x)
        p = (np.eye(4) - gain @ h) @ p
        track.append(x)
    return np.stack(track), p


@wild(
    lambda r: (
        r.dirichlet(np.ones(4)),
        r.dirichlet(np.ones(4), 4),
        r.dirichlet(np.ones(6), 4),
        r.integers(0, 6, 15),
    )
)
def viterbi(start, moves, shows, seen):
    score = np.log(start) + np.log(shows[:, seen[0]])
    back = []
    for t in range(1, len(seen)):
        paths = score[:, None] + np.log(moves)
        back.append(paths.argmax(axis=0))
        score = paths.max(axis=0) + np.log(shows[:, seen[t]])
    state = score.argmax()
    path = [state]
    for step in reversed(back):
        state = step[state]
        path.append(state)
    return np.stack(path[::-1]), score.max()


@wild(lambda r: (r.integers(0, 256, (9, 8, 3)).astype("u1"),))
def grey_and_threshold(image):
    grey = image @ np.array([0.299, 0.587, 0.114])
    grey = grey.astype(np.uint8)
    return grey, np.where(grey > grey.mean(), 255, 0).astype("u1"), 255 - grey


@wild(lambda r: (r.normal(size=400), np.sort(r.uniform(0, 400, 50))))
def resample(signal, times):
    at = np.arange(signal.shape[0])
    even = np.interp(times, at, signal)
    z = (signal - np.median(signal)) / (np.percentile(signal, 75) - np.percentile(signal, 25))
    return even, np.abs(z) > 2, np.diff(signal, n=2)
