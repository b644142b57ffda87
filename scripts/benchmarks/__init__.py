"""Code shared by scripts/benchmark and scripts/compare_with_pytorch. Standard library only: PyTorch runs in the
Python that the user names."""
