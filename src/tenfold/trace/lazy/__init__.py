"""Lazy arrays: values outside any trace, run when they are needed.

- A lazy array is an `Array` of the scope `LAZY` (`trace/lazy/lazy`), so that NumPy's surface,
  views and updates are the same code as in a trace. Its value is an object: an array, or the node
  that makes it, which holds its inputs. There is no builder and no list of nodes: what nobody
  holds is freed by reference counts, and arrays go from thread to thread.
- What is small and at hand is not put off (`tn.config.direct`): an operation on arrays of few
  elements is run when it is called, by the same function of NumPy's (`trace/lazy/compute`), since
  noting it down would take longer. So the bits do not depend on when something is run. All else
  waits until a value is needed.
- `trace/lazy/realise` walks from what is needed to the arrays at hand and runs the nodes one by
  one, each by the function of NumPy's that its op's reference is. No graph is made for it. An error
  names the line of its node.
- Where many elements are computed on the way and not kept, `api/policy` is asked for a plan. Equal
  nodes are merged then, and a value on the way whose reference count shows another holder becomes
  an output too. Structures are counted by a key of forms and numbers; what comes back often enough
  is compiled and checked in the background.
- `trace/lazy/recall` plays a recording (`trace/lazy/recording`) of a call like an earlier one
  without asking the surface. `trace/lazy/quick` is the short way of elementwise operations.
- Memory that nobody but one value holds is written over, by `x += y` or by a node that reads that
  value last. Who holds it is told by reference counts; functions that might give other bits in
  place are left out.
- A node knows two bounds on how many nodes are before it: summed over its inputs, and made since
  the oldest of them. When the smaller passes `tn.config.pending`, it is run.
- `api/namespace` is the array API standard: thin functions over the surface. What has no op runs
  on the host (`api/namespace/dispatch`). `docs/array-api.md` has the counts.
- `api/call/kinds` takes arrays of other libraries by DLPack and gives results back as theirs.
"""
