"""The modules of scripts/drive. Standard library only."""
