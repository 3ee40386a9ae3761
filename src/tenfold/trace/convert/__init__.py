"""Python's control flow on traced values: a function's syntax tree, rewritten.

`source` finds the tree of a function and makes a function of a rewritten one. `names` says what
statements bind and how they are left. `statements` and `expressions` rewrite: each `if`, `while`,
`for`, `and`, … becomes a call of an operator (`operators`), with its parts as functions. An
operator looks at what is tested: a Python value has Python's statement carried out, a traced one
has both sides or the body traced in scopes of their own (`region`) and made a node (`branches`,
`loops`).

The variables of the function are closure cells of the parts, so Python's own rules hold for them.
Afterwards a variable that has no one type is left without a value, with the reason, and a use of
it is the error: what is not used need not agree. Arrays that a part updates in place are found
while it is traced, whoever updates them.
"""
