"""Code shared by scripts/benchmark and scripts/compare_with_pytorch. Uses only the standard library, because PyTorch
runs in a separate Python that the user names."""
