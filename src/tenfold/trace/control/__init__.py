"""Control flow and effects: branches, loops, hooks and host calls.

`hook`, `print` and `call_host` are nodes without callables: the graph holds a name and a number,
and the run binds them (`reference/callbacks`). Callbacks get copies. They run in program order,
once an iteration in loops, only in the branch that is taken.
"""
