"""The checks of scripts/check. Each module's run(tree) returns (what it examined, problems)."""
