"""Modules that need only torch, not the library of package rematch."""
