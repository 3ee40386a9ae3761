"""Parity: agreement with the reference, certificates, bisect."""
