"""Rollout: search for each candidate by itself, guided by a policy or exhaustive."""
