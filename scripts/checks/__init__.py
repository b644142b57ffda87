"""The checks of scripts/check. The function run(tree) of each module returns (text about what it checked, problems)."""
