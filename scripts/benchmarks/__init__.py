"""What scripts/benchmark and scripts/compare_with_pytorch share. Standard library only: PyTorch runs
in the Python that the user names."""
