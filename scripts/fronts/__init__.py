"""Plans of a search beside what PyTorch offers the same models."""
