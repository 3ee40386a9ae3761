"""A short tour: `make run` shows it."""

import numpy as np

import tenfold as tn


def title(text: str) -> None:
    print(f"\n── {text} " + "─" * max(0, 68 - len(text)))


title("a NumPy function, traced once")


@tn.jit
def layer(x, w, b):
    h = np.tanh(x @ w + b)
    return h / np.sqrt((h * h).sum(axis=1, keepdims=True))


rng = np.random.default_rng(0)
x, w, b = rng.normal(size=(4, 3)), rng.normal(size=(3, 2)), np.zeros(2)
print(layer(x, w, b))
print("traces:", layer.traces, "| again with new values:", layer(x + 1, w, b).shape, layer.traces)

title("its graph: flat, every value once, with your lines")
graph = layer.trace(x, w, b)
print(graph)

title("a graph is plain data with a digest")
data = graph.to_bytes()
print(f"{len(graph.nodes)} nodes, {len(data)} bytes, {graph.digest[:16]}…")
print("read back equal:", tn.Graph.from_bytes(data) == graph, tn.parse(str(graph)) == graph)

title("loops are one node, whatever their trip count")


@tn.jit
def newton(a):
    def step(state):
        guess, count = state
        return (guess + a / guess) / 2, count + 1

    return tn.while_loop(lambda s: np.abs(s[0] * s[0] - a) > 1e-12, step, (a, 0))


root, steps = newton(2.0)
print(f"sqrt(2) = {root:.12f} after {steps} steps; nodes: {len(newton.trace(2.0).nodes)}")

title("branches and hooks")


@tn.jit
def guarded(v):
    v = tn.hook("seen", v, lambda value: print("  the hook sees", value))
    return tn.cond(v.sum() > 0, lambda: np.log(v), lambda: np.zeros_like(v))


print(guarded(np.array([1.0, 2.0])))
print(guarded.with_hooks({"seen": None})(np.array([-1.0, 0.5])), "(hook silenced)")

title("what runs: kernels over slots, checked against the reference")
plan = layer.plan(x, w, b)
print(plan.explain())
print(layer.certificate(x, w, b))

title("one program for many: vmap")
print(tn.vmap(lambda row: row / np.sqrt((row * row).sum()))(x).shape)

title("a plan is a file that any process can call")
data = plan.to_bytes()
print(f"{len(data)} bytes")

title("errors say what, where and what to do")
try:
    tn.jit(lambda p, q: p + q)(np.ones(3, "f4"), np.ones(4, "f4"))
except tn.TenfoldError as error:
    print(error)
try:
    tn.jit(lambda p: p if p > 0 else -p)(np.float32(1))
except tn.TenfoldError as error:
    print(error)
