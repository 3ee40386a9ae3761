"""Lazy arrays: values outside any trace, run when they are needed.

- A lazy array is an `Array` of the scope `LAZY` (`trace/lazy/lazy`), so that NumPy's surface,
  views and updates are the same code as in a trace. Its value is an object: an array, or the node
  that makes it, which holds its inputs. There is no builder and no list of nodes: what nobody
  holds is freed by reference counts, and arrays go from thread to thread.
- `trace/lazy/realise` walks from what is needed to the arrays at hand, merges equal nodes, and
  makes a closed graph. A value on the way whose reference count shows another holder becomes an
  output too. The graph is found by its structure (`_graphs`) and names no lines; when it fails it
  is built again with the lines and run by the reference, whose error names the right one.
- A node knows two bounds on how many nodes are before it: summed over its inputs, and made since
  the oldest of them. When the smaller passes `LAZY.limit`, it is run.
- `api/policy` chooses between the reference and a plan by counts alone.
- `api/namespace` is the array API standard: thin functions over the surface. What has no op runs
  on the host (`api/namespace/dispatch`). `docs/array-api.md` has the counts.
- `api/call/kinds` takes arrays of other libraries by DLPack and gives results back as theirs.
"""
