"""Proofs: why a fact holds, and the checker that replays it."""
