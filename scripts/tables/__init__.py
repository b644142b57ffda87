"""The parts of scripts/result_tables."""
