"""What a function closes over: found, guarded, listed, and looked at again by each call.

- `api/captures/captures` walks what a function closes over: closure cells, globals it names,
  defaults, fields of `self` that it reads, and the functions, objects, classes and containers
  reached through these. Which names code reads comes from its bytecode (`api/captures/reads`). A
  `Place` is a path that can be gone along again (`api/captures/places`).
- Arrays are named inputs of the graph. Each call looks whether another array stands there now:
  one of equal type is swapped in, another type traces anew, and so do two places that shared one
  array and no longer do. They are taken as read-only snapshots: a change in place afterwards is
  not seen until `f.refresh()`. Arrays made while tracing are constants up to 16 elements, and
  unnamed captures (`made.0`) beyond. An array reached in another way (through a generator, a
  library's object) counts as made while tracing.
- Settings are guarded by type and bits (`trace/exact`): 0.0 is not -0.0, 1 is not True, a NaN is
  itself. Of containers all items, lengths and keys in their order; of objects the fields that are
  read, through slots, classes, bases and properties; of `os.environ` everything. Functions and
  classes are guarded by identity. Objects of libraries too: what may change inside them is listed
  as not guarded by `f.explain_captures()`.
- Native code compares objects by identity along each path, and all items of lists and dicts
  (`backends/cpu/entry/watch`); about sets, deques and fields that are not there it asks a Python
  function. What it finds changed Python looks at again, by type and bits.
- What a function changes while it is traced (a field, a variable, an item, a captured array of up
  to 64 KiB) is an error that names it (`api/captures/snapshot`), since it would be changed once and
  not in every call. A new entry of a dict, a `cached_property` and fields of objects of installed
  packages are let be: they keep what was computed, and the next call traces anew and sees it.
- Random numbers drawn while tracing are an error (`trace/chance`): states of NumPy's and Python's
  own generators and of all that are captured are compared, and NumPy gives out no entropy to a
  thread that traces. Clocks and the system's entropy that walked code names are a warning at
  their line (`api/captures/clocks`), whether or not that line is reached.
"""
