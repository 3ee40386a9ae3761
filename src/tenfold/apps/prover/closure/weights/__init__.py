"""Weights in a closure: the best proof of every fact, and the rules that prove a candidate.

The facts are those of the closure, sorted; a weight stands at a fact's place, -1 where there is no
proof. `groundings` is the one thing that looks at rules: all their groundings over given facts, the
best of each written into a table; `chains` does the same by matrices where that is less work.
`fixpoint` takes it height by height; `last` takes it once more, each rule apart, and folds what the
rules give in their order.
"""
