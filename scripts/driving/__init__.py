"""The parts of scripts/drive. Standard library only."""
