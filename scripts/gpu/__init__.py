"""The parts of scripts/verify_gpu."""
