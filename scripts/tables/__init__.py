"""The modules of scripts/result_tables."""
