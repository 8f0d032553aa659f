"""Runs other tools beside the collection on one small cloud, and writes docs/comparison.md."""
