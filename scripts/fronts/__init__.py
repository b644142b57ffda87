"""Compares plans of a search with PyTorch's own options for the same models."""
