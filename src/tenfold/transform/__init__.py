"""Transformations: programs made from programs.

`tn.vmap` traces its function for one lane, batches the closed graph (`transform/batch`) and puts
the result into the program at hand; outside a trace that runs at once. A lane is one place along
the mapped axis.

- Each node is batched by its row's rule; what nothing batched reaches stays as it is. Which
  values differ between lanes is a union of what they depend on, so one walk over each scope
  answers for every choice of batched parameters, loops included (`ops/batching/differs`).
- Where all lanes go the same way, a branch stays a branch and a loop a loop. Where they part,
  each branch that some lane takes is run under the mask of the lanes that take it, and results
  are chosen; a loop carries which lanes go on, and goes on while any does. A flat small branch
  that can do no harm is put in place, as a select.
- The mask goes only into scopes that heed it: where something may raise, go on for ever or be
  noticed. What runs under a mask runs only where at least one lane is active, so a node that all
  lanes share needs no care. One that reads batched values and may raise has a guard in its row,
  which makes its inputs harmless in the other lanes (`ops/batching/guards`).
- Effects happen for one active lane after another: a loop over lanes around the node, with a
  branch on the mask. So a hook is called once for each active lane, in the order of lanes, with
  that lane's values; each lane's own calls keep their order. Host calls likewise; their results
  always differ between lanes.
- A custom op keeps its name and has its fallback batched; under a mask that the fallback heeds,
  the fallback stands in its place.
- With no lanes at all the function is traced and nothing of it runs.
"""
