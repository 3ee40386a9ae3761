"""Arrays whose values are known while tracing, as `np.zeros(3)` is in a traced function.

- `trace/host/value` holds the NumPy array of one, and says what stands for it in a graph.
- `trace/host/array` is the handle. What is done with known arrays alone NumPy does at once. When
  something traced is written to one, the handle itself moves to the graph, and its views with it.
- `trace/host/compute` calls NumPy, and finds out what a result shares memory with.
"""
