"""Plans for compiled models: reads AOTAutograd's joint graph as a trace, searches it, and partitions it as the plan says."""
