"""Scores: what orders candidates beside the height of a proof: rules' weights, embeddings."""
