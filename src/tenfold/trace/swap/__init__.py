"""What stands in NumPy's place while functions are traced.

NumPy does not ask traced arrays what `np.zeros(3)` or `np.array([a, b])` should be. So while any
thread traces, such functions of the numpy module are substitutes, which ask whether the thread that
calls is tracing, and otherwise call NumPy's.

- `trace/swap/substitute` is what stands for one function, or for one of `np.r_` and its like.
- `trace/swap/constructors` lists what is substituted, and what each does in a traced function.
- `trace/swap/swap` puts them there and takes them away.
"""
