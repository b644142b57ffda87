"""Plans for compiled models: converts AOTAutograd's joint graph to a trace, searches for a plan, and partitions the
graph according to the plan."""
