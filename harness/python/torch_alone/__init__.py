"""Modules that work on a model with torch alone, without the library of package rematch."""
