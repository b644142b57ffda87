"""Plans for compiled models: reads AOTAutograd's joint graph as a trace, searches for a plan, and partitions the graph
as the plan says."""
