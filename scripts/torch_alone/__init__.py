"""What works beside a model with torch alone, without the library of package rematch."""
