"""The prover: knowledge-graph queries evaluated by proof search, in batches.

- `input` reads, generates and checks; `reference` is plain Python that shares nothing with the
  engines, its two provers nothing with each other.
- `mining` learns rules from train: bodies are walks, grown by one step at a time in all ways at
  once, by NumPy's joins; only counts, and the best rules, are kept.
- `closure` takes rules as tables (`joins`), so one traced loop (`fixpoint`) runs any rules. Facts
  are int64 keys; an index holds each by subject and by object, sorted. A round is cut into pieces
  of bounded size, in an order that no capacity changes. Where few facts are possible at all, a
  table with a place for each says what is new and where in the index it stands, instead of
  sorting and searching: such programs find most facts hundreds of times. `lookups` ranks.
  `closure/weights` grounds rules over the closure's facts, for the best proof of each.
- `rollout` searches for candidates one by one, guided by a policy (`loop`) or `exhaustive`. The
  latter keeps all states of a batch in one store, in the order they were met, with a bucket for
  each hash and all goals compared. Appending is a `dynamic_update`, which works in place; when
  the store is full the loop ends, NumPy makes it longer, and the loop goes on.
- `scores` are what orders candidates beside heights: rules' weights and embeddings.
- `proofs` finds, replays, retraces and explains proofs; `report` makes ranks into figures, tables
  and the page; `output` writes files: every query's answer, tables, where figures come from.
- `api` is what `tenfold.prover` gives out; the command and it share all that is below.
- What an engine finds of a query is a `Finding`: a rank as counts, a height, outcomes. Journals,
  tables, JSON and the page are made of these and of nothing else.
- Functions of the engines are `TracedFunction`s: one source, run compiled or by the evaluator, so
  that `--compare` takes any step by both.

Rollouts. A policy guides the search for each candidate; the whole search is one `while_loop`,
compiled once (`apps/prover/rollout`).

- **Lanes and a queue.** A lane searches for one candidate at a time and counts its own steps.
  When it ends it takes the next candidate from a queue in arrays, so one call answers thousands.
  The queue has one length; what is beyond its count is never taken. Threads share the candidates,
  each with a queue of its own: there is no host step in the loop, so they run at once.
- **Flat slots.** All successors of a round lie in one column of slots, one state's after
  another's: needs are known before anything is built (a range of facts, the clauses that unify),
  their running sums say where each lane begins. As many lanes go on as fit; the others wait for a
  later round. So which lanes go together changes no result, and only a lane that by itself needs
  more slots than there are overflows.
- **Patterns.** Nearly all successors of a state are by facts, and these differ only in the
  constants that the first goal's variables are bound to. So what they have in common is worked
  out once, with holes in place of those constants (`patterns`); a clause's one successor is a
  pattern without holes. A slot names its pattern and what fills it (`successors`): only the goals
  with a hole are looked up, told from the others, hashed and embedded for each slot, and only
  states that are chosen are written out. How many goals can have a hole follows from the clauses
  where no variable spreads (`tables`): two for chains. On family this is half the work of
  building each successor.
- **A row is a goal, a column a pattern.** A goal is one integer (`words`). Everything that is
  done to goals is done along columns, in vectors. Dropped goals leave gaps. Variables are
  numbered by one scan over the rows, with the numbers given so far in the bits of an integer. A
  state's hash is the sum of its goals' hashes, so that a slot adds its own to its pattern's.
- **Hashing.** Facts and ranges stand in tables where each key has two places (`tables`): two
  looks, no search. Repetitions within a step are found by a scatter-min of slot numbers into
  places by hash; visited states by comparing hashes with those of the lane's past. Where hashes
  agree, all goals are compared, in loops that otherwise do not run.
- **The policy.** A successor's score is its product with the state after a residual layer. The
  last linear map is applied to the state's side, once a state, instead of to each successor.
- The blueprint of this engine had a row of padded successors for each lane. A goal with two free
  variables has thousands of successors and one with none has a few: nearly all of such a row is
  padding, or it overflows.
"""
