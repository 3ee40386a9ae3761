"""Parity: agreement with the reference, certificates, bisect.

- The rule stands in `parity/rule/agree`: an op's own bound (the column `error` of its row) is
  added to what the bounds of its inputs make of it, found by asking the reference again with
  inputs moved by their bounds. Integers and bools are exact but where what decided them lies
  within its bound: a near-tie, which is listed. An integer that is off may be any in a range, of
  which its ends tell little: what ops make of such ranges has rules of its own
  (`ops/agreement/spreads`), tried exhaustively on 8 bits. On inputs that are right, ops that are
  exact or correctly rounded must give the very bits, signs of zeros too; a product may go
  unrounded into a sum, but is stored rounded.
- What is let off beyond a row's bound, all of it in `ops/agreement` with its reason: the order of
  sums and products (anything only where a partial one may overflow, or a product become
  subnormal; infinities and NaN settle the result), what the reference's own sum is off by
  (measured in a wider type), the terms of a library's product, half a unit for each since it adds
  one after the other, subnormal products that go unrounded into a sum, complex products that
  overflow or go through BLAS with infinities, remainders whose quotient may be another, which
  zero max and min give, the sign of a computed NaN. `tests/parity/test_agree` plants wrong
  results in every row of the table.
- `parity/replay/walk` follows one run of the reference. As soon as it has gone past a step,
  `parity/replay/replay` carries that step out natively, in memory laid out as the plan says,
  `parity/replay/steps` judges it, and the reference's values take the place of its results. So
  each step is judged on the reference's own values; a slot reused too early is found by the step
  that reads it, or that overwrites what it is still reading; values are dropped as soon as their
  steps are done. Bounds are worked out only where bits differ, and for large elementwise steps on
  a sample that has the largest errors, which the certificate states.
- A branch that the run does not take, and the body of a loop of no rounds, are walked through
  afterwards on the inputs that they would have had, unless they call Python or raise.
- Loops: rounds 0, 1, 2, 4, 8, … and the last one by one, all rounds in `tn.bisect`. Natively,
  with the same step and slots: the first three rounds, judged by bounds; the first 17, which goes
  past a power of two, and the whole loop, judged by what rounding makes of the reference.
- What rounding makes (`parity/replay/perturb`): over many steps, bounds that are added up soon
  allow anything. So the reference is run again with every result moved by its op's bound, with
  random signs, as stochastic arithmetic does. An output that lies more than 8 times farther from
  the reference's than such runs, and more than 16 units in the last place, is wrong; of integers
  and bools no more than 8 times as many may differ as in such runs. Where no loop went more than
  16 rounds, the bounds of all ops have the last word on a whole plan: they know of signs of zeros
  and NaN, and of infinities.
- Drawn values (`parity/replay/drawn`): the caller's values may hide a fault: no index twice, a
  zero where a sign is wrong. So each distinct kernel is first judged on values drawn for it: with
  ties and zeros of both signs, with NaN, infinities and the ends of integers, of one sign alone;
  integers are indices, repeated and at the ends of what its checks let in. What the reference
  refuses the kernel has to refuse, too. This is done once for a kernel and what it was made of,
  in a process, and noted in the certificate.
- Last the plan is run as a whole, by the very bytecode that answers calls, in memory with guard
  bytes around what it may write (so are single steps, in the arena, too). Its outputs are judged
  as a loop's are, and are the answer: so the first call gives the same bits as all later ones.
  Callbacks are called in the reference's run; the plan is answered from memory, and must ask for
  the same ones in the same order. What the cache and files keep is compared with it, byte for
  byte (`backends/cpu/run/freeze`).
- The check of a first call takes about as long as making the plan did, at least 30 ms and at most
  0.1 s: kernels on drawn values for at most half of it, then steps, then the whole. What is left
  is in the certificate, which is `partial` until nothing is. The rest is done in the background,
  on a copy of the arguments, after the call is answered; where these are large (256 MiB, all that
  wait together) or Python is called, later calls go on with it: the second, the fourth, the
  eighth and so on, for longer each time. A check goes on where the last one ended, in other
  processes, too (`api/checking`). It gives up, and goes on later, when there is no memory for it,
  at the end of the process, and for a fork, of which both sides go on. What it raises in the
  background the next call tells.
- Certificates belong to kernels and wirings, too (`parity/wiring`): a plan of judged kernels that
  is wired as one that was checked, at other sizes, answers before its own check, which goes on
  behind when it is quiet.
- While a certificate is partial the plan answers; in strict mode the check has no limit, and the
  reference answers until nothing is left. What no check came to, a branch that calls Python say,
  has an alarm in the bytecode: the first call that comes there has the next one checked.
- A plan that is refuted later is taken out of use at once (its entry points are closed), and the
  next call says how many it had answered.
- `tn.parity` and `tn.bisect` look at the very plan that answers, with its donation, on copies of
  what is donated.
- On disagreement the reference goes on alone and answers. The program is marked as refuted, on
  disk too, and every process that meets it says so once; the kernel at fault is looked into by
  storing all its values, then by halving (`parity/find/bisect`).
- Faults are planted by tests, through `tenfold/seam`.
"""
