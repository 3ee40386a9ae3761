"""Statistics and learning."""

import numpy as np
from wild.wild import wild


@wild(lambda r: (r.normal(size=(200, 3)), r.normal(size=(5, 3))))
def k_means(points, centres):
    for _ in range(6):
        distances = np.linalg.norm(points[:, None, :] - centres[None], axis=-1)
        nearest = np.argmin(distances, axis=1)
        members = nearest[:, None] == np.arange(len(centres))
        counts = np.maximum(members.sum(axis=0), 1)
        centres = (members.T.astype(points.dtype) @ points) / counts[:, None]
    return centres, nearest


@wild(lambda r: (r.normal(size=(300, 8)), r.normal(size=300), 0.5))
def ridge_regression(x, y, penalty):
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    weights = np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ (y - y.mean()))
    residual = y - y.mean() - x @ weights
    return weights, 1 - (residual**2).sum() / ((y - y.mean()) ** 2).sum()


@wild(lambda r: (r.normal(size=(120, 10)).astype("f4"), r.integers(0, 4, 120)))
def softmax_regression(x, labels):
    weights = np.zeros_like(x, shape=(x.shape[1], 4))
    targets = (labels[:, None] == np.arange(4)).astype(x.dtype)
    losses = []
    for _ in range(12):
        logits = x @ weights
        logits = logits - logits.max(axis=1, keepdims=True)
        chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        losses.append(-np.mean(np.log((chances * targets).sum(axis=1))))
        weights = weights - 0.5 * x.T @ (chances - targets) / len(x)
    return weights, np.stack(losses)


@wild(
    lambda r: (
        r.normal(size=(12, 4, 6)).astype("f4"),
        r.normal(size=(6, 32)).astype("f4") * np.float32(0.3),
        r.normal(size=(8, 32)).astype("f4") * np.float32(0.3),
        r.normal(size=32).astype("f4"),
    )
)
def lstm(inputs, w, u, b):
    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    h = c = np.zeros_like(inputs, shape=(inputs.shape[1], 8))
    for x in inputs:
        i, f, g, o = np.split(x @ w + h @ u + b, 4, axis=-1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
    return h, c


@wild(
    lambda r: (
        r.normal(size=(4, 6)),
        r.normal(size=(4, 5)),
        r.normal(size=(3, 6, 5)),
        r.normal(size=(3, 5, 5)),
    )
)
def gru_cell(x, h, w, u):
    z = 1 / (1 + np.exp(-(x @ w[0] + h @ u[0])))
    r = 1 / (1 + np.exp(-(x @ w[1] + h @ u[1])))
    n = np.tanh(x @ w[2] + (r * h) @ u[2])
    return (1 - z) * n + z * h


@wild(lambda r: tuple(r.normal(size=(2, 4, 17, 8)).astype("f4") for _ in range(3)))
def causal_attention(q, k, v):
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1]).astype("f4")
    length = q.shape[2]
    visible = np.tril(np.ones((length, length), dtype=bool))
    scores = np.where(visible, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("bhqk,bhkd->bhqd", weights, v)


@wild(
    lambda r: (
        r.normal(size=(5, 7, 33)).astype("f4"),
        r.normal(size=33).astype("f4"),
        r.normal(size=33).astype("f4"),
    )
)
def layer_norm(x, scale, shift):
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * scale + shift


@wild(lambda r: (r.normal(size=(6, 20)), r.normal(size=(6, 20)), 0.1))
def contrastive_loss(a, b, temperature):
    a = a / np.linalg.norm(a, axis=1, keepdims=True)
    b = b / np.linalg.norm(b, axis=1, keepdims=True)
    logits = a @ b.T / temperature
    return -np.mean(np.diagonal(logits) - np.log(np.exp(logits).sum(axis=1)))


@wild(lambda r: (r.integers(0, 7, (4, 9)),))
def one_hot(labels):
    return (labels[..., None] == np.arange(7)).astype(np.float32)


@wild(lambda r: (r.integers(0, 5, 300), r.integers(0, 5, 300)))
def confusion_matrix(truth, guess):
    table = np.zeros_like(truth, shape=(5, 5))
    np.add.at(table, (truth, guess), 1)
    recall = np.diagonal(table) / np.maximum(table.sum(axis=1), 1)
    return table, recall, recall.mean()


@wild(lambda r: (np.sort(r.uniform(0, 50, (20, 2, 2)), axis=1).reshape(20, 4),))
def intersection_over_union(boxes):
    corner = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    opposite = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    overlap = np.prod(np.clip(opposite - corner, 0, None), axis=-1)
    area = np.prod(boxes[:, 2:] - boxes[:, :2], axis=-1)
    return overlap / (area[:, None] + area[None] - overlap)


@wild(lambda r: (np.sort(r.uniform(0, 30, (24, 2, 2)), axis=1).reshape(24, 4), r.random(24)))
def non_maximum_suppression(boxes, scores):
    order = np.argsort(-scores)
    boxes = boxes[order]
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    overlap = np.clip(high - low, 0, None).prod(axis=-1)
    clash = overlap / (area[:, None] + area - overlap) > 0.3
    keep = np.ones_like(scores, dtype=bool)
    for i in range(len(scores)):
        later = np.arange(len(scores)) > i
        keep &= ~(keep[i] & clash[i] & later)
    return order, keep


@wild(lambda r: (r.normal(size=500), r.integers(0, 500, (40, 500))))
def bootstrap(sample, draws):
    means = sample[draws].mean(axis=1)
    return means, np.percentile(means, [2.5, 97.5]), means.std(ddof=1)


@wild(lambda r: (r.normal(size=(200, 6)) @ r.normal(size=(6, 6)),))
def correlation_matrix(x):
    centred = x - x.mean(axis=0)
    covariance = centred.T @ centred / (len(x) - 1)
    deviation = np.sqrt(np.diag(covariance))
    return covariance / np.outer(deviation, deviation), np.corrcoef(x, rowvar=False)


@wild(lambda r: (r.normal(size=(150, 12)) * np.arange(1, 13),))
def pca_by_power_iteration(x):
    x = x - x.mean(axis=0)
    covariance = x.T @ x / len(x)
    found = []
    for _ in range(2):
        v = np.ones_like(x[0])
        for _ in range(60):
            v = covariance @ v
            v /= np.linalg.norm(v)
        value = v @ covariance @ v
        covariance = covariance - value * np.outer(v, v)
        found.append(value)
    return np.stack(found)


@wild(lambda r: (r.normal(size=(50, 4)), r.normal(size=(30, 4)), r.integers(0, 3, 50)))
def nearest_neighbours(train, queries, labels):
    squares = (queries**2).sum(1)[:, None] + (train**2).sum(1) - 2 * queries @ train.T
    near = np.argsort(squares, axis=1)[:, :5]
    votes = (labels[near][..., None] == np.arange(3)).sum(axis=1)
    return votes.argmax(axis=1), np.sqrt(np.maximum(np.take_along_axis(squares, near, 1), 0))


@wild(lambda r: (r.normal(size=(80, 5)), r.normal(size=5), r.integers(0, 2, 80).astype(float)))
def adam(x, start, y):
    w, m, v = start, np.zeros_like(start), np.zeros_like(start)
    for t in range(1, 25):
        p = 1 / (1 + np.exp(-(x @ w)))
        g = x.T @ (p - y) / len(y)
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g**2
        w = w - 0.05 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return w


@wild(lambda r: (r.normal(size=(60, 2)), r.normal(size=(3, 2)), r.dirichlet(np.ones(3))))
def gaussian_mixture(x, means, mix):
    var = np.ones_like(mix)
    for _ in range(8):
        square = ((x[:, None] - means) ** 2).sum(-1)
        log = np.log(mix) - square / (2 * var) - np.log(2 * np.pi * var)
        top = log.max(axis=1, keepdims=True)
        weight = np.exp(log - top)
        weight /= weight.sum(axis=1, keepdims=True)
        total = weight.sum(axis=0)
        means = weight.T @ x / total[:, None]
        var = (weight * ((x[:, None] - means) ** 2).sum(-1)).sum(0) / (2 * total)
        mix = total / len(x)
    return means, var, mix
