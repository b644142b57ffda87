"""The modules of scripts/gpu_queue."""
