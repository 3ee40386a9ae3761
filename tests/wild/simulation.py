"""Simulations, graphs and linear algebra."""

import numpy as np
from wild.wild import wild


@wild(lambda r: ((r.random((30, 30)) < 0.1).astype(float),))
def page_rank(links):
    out = links.sum(axis=1, keepdims=True)
    chances = np.where(out > 0, links / np.where(out > 0, out, 1), 1 / len(links))
    rank = np.full_like(links, 1 / len(links), shape=len(links))
    for _ in range(30):
        rank = 0.15 / len(links) + 0.85 * rank @ chances
    return rank, np.argsort(-rank)[:5]


@wild(lambda r: (r.random((20, 24)) < 0.4,))
def game_of_life(board):
    for _ in range(10):
        around = sum(
            np.roll(board.astype(int), (dy, dx), (0, 1))
            for dy in (-1, 0, 1)
            for dx in (-1, 0, 1)
            if dy or dx
        )
        board = (around == 3) | (board & (around == 2))
    return board


@wild(lambda r: (np.linspace(-2, 0.6, 40), np.linspace(-1.2, 1.2, 30)))
def mandelbrot(x, y):
    c = x + 1j * y[:, None]
    z = np.zeros_like(c)
    count = np.zeros_like(c, dtype=int)
    for _ in range(20):
        inside = np.abs(z) <= 2
        z = np.where(inside, z * z + c, z)
        count += inside
    return count


@wild(lambda r: (r.normal(size=(12, 3)), r.normal(size=(12, 3)) * 0.1, r.uniform(0.5, 2, 12)))
def n_body(position, velocity, mass):
    def pull(position):
        apart = position[None] - position[:, None]
        inverse = ((apart**2).sum(-1) + 0.05) ** -1.5
        return np.einsum("ij,ijk->ik", inverse * mass, apart)

    force = pull(position)
    for _ in range(10):
        velocity = velocity + 0.005 * force
        position = position + 0.01 * velocity
        force = pull(position)
        velocity = velocity + 0.005 * force
    return position, 0.5 * (mass * (velocity**2).sum(-1)).sum()


@wild(lambda r: (r.random((16, 18)),))
def heat_equation(heat):
    heat = heat.copy()
    for _ in range(25):
        flow = heat[2:, 1:-1] + heat[:-2, 1:-1] + heat[1:-1, 2:] + heat[1:-1, :-2]
        heat[1:-1, 1:-1] += 0.1 * (flow - 4 * heat[1:-1, 1:-1])
        heat[0] = heat[1]
        heat[:, -1] = 0
    return heat


@wild(lambda r: (r.random((14, 14)) * 0.1 + 0.5, r.random((14, 14)) * 0.1))
def reaction_diffusion(u, v):
    def spread(a):
        return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a

    for _ in range(20):
        meet = u * v**2
        u = u + 0.16 * spread(u) - meet + 0.06 * (1 - u)
        v = v + 0.08 * spread(v) + meet - 0.122 * v
    return u, v


@wild(lambda r: (np.where(r.random((15, 15)) < 0.3, r.integers(1, 9, (15, 15)), 99).astype(float),))
def floyd_warshall(distance):
    distance = distance.copy()
    np.fill_diagonal(distance, 0)
    for k in range(len(distance)):
        distance = np.minimum(distance, distance[:, k, None] + distance[k])
    return distance


@wild(lambda r: (r.normal(size=(12, 6)),))
def gram_schmidt(a):
    q = np.zeros_like(a)
    for k in range(a.shape[1]):
        v = a[:, k] - q @ (q.T @ a[:, k])
        q[:, k] = v / np.linalg.norm(v)
    return q, q.T @ a


@wild(lambda r: (np.diag([1.0, 3.0, 6.0, 10.0, 20.0]) + 0.1 * np.ones((5, 5)),))
def qr_iterations(a):
    for _ in range(15):
        q, r = np.linalg.qr(a)
        a = r @ q
    return np.sort(np.diag(a))


@wild(lambda r: (r.normal(size=(20, 20)), r.normal(size=20)))
def conjugate_gradients(a, b):
    a = a @ a.T + 20 * np.eye(20)
    x = np.zeros_like(b)
    r = p = b
    for _ in range(8):
        ap = a @ p
        step = (r @ r) / (p @ ap)
        x = x + step * p
        new = r - step * ap
        p = new + (new @ new) / (r @ r) * p
        r = new
    return x, np.linalg.norm(a @ x - b)


@wild(lambda r: (r.normal(size=5),))
def runge_kutta(state):
    def slope(x):  # Lorenz 96
        return (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + 8

    path = [state]
    for _ in range(20):
        k1 = slope(state)
        k2 = slope(state + 0.005 * k1)
        k3 = slope(state + 0.005 * k2)
        k4 = slope(state + 0.01 * k3)
        state = state + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(state)
    return np.array(path) if isinstance(state, np.ndarray) else np.stack(path)


@wild(lambda r: (r.integers(1, 20, 8), r.integers(1, 15, 8)))
def knapsack(values, weights):
    best = np.zeros_like(values, shape=41)
    room = np.arange(41)
    for value, weight in zip(values, weights):  # noqa: B905 - as users write it
        taken = best[np.maximum(room - weight, 0)] + value
        best = np.where(room >= weight, np.maximum(best, taken), best)
    return best


@wild(lambda r: (r.integers(0, 4, 10), r.integers(0, 4, 9)))
def edit_distance(a, b):
    row = np.arange(len(b) + 1)
    for i in range(len(a)):
        new = [row[0] + 1]
        for j in range(len(b)):
            swap = row[j] + (a[i] != b[j])
            new.append(np.minimum(np.minimum(row[j + 1] + 1, new[-1] + 1), swap))
        row = np.stack(new)
    return row[-1]


@wild(lambda r: (r.normal(size=(30, 3)), r.normal(size=(30, 3)), r.normal(size=3)))
def rigid_alignment(a, b, shift):
    b = b + shift
    ca, cb = a.mean(0), b.mean(0)
    u, s, vt = np.linalg.svd((a - ca).T @ (b - cb))
    flip = np.array([1.0, 1.0, 0.0]) + np.sign(np.linalg.det(u @ vt)) * np.array([0.0, 0.0, 1.0])
    turn = u * flip @ vt
    return s, np.sqrt((((a - ca) @ turn - (b - cb)) ** 2).sum(-1).mean())


@wild(lambda r: (r.uniform(-1, 1, (50, 2)), r.uniform(-1, 1, (7, 2))))
def points_in_polygon(points, corners):
    x, y = points[:, 0, None], points[:, 1, None]
    x1, y1 = corners[:, 0], corners[:, 1]
    x2, y2 = np.roll(x1, -1), np.roll(y1, -1)
    crosses = ((y1 > y) != (y2 > y)) & (x < (x2 - x1) * (y - y1) / (y2 - y1) + x1)
    return crosses.sum(axis=1) % 2 == 1


@wild(lambda r: (r.integers(0, 1 << 30, 64).astype("u4"),))
def xorshift(state):
    for _ in range(5):
        state = state ^ (state << np.uint32(13))
        state = state ^ (state >> np.uint32(17))
        state = state ^ (state << np.uint32(5))
    return state, (state >> 8) * 2.0**-24
