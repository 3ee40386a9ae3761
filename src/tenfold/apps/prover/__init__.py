"""The prover: knowledge-graph queries evaluated by proof search, in batches."""
