"""The parts of scripts/gpu_queue."""
