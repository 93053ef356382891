"""Checkpoints: strict reading, the catalogue, and where models come from."""
