"""Compares plans of a search with what PyTorch offers for the same models."""
