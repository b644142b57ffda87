// Marks traces and plans of compiled models. rematch.export_joint() writes such a trace. Its ops
// are those of the joint graph of torch.compile, so no eager model runs them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace rematch {

// The dimension that marks the trace, the plans and the fronts of a compiled graph.
inline constexpr std::string_view kCompiledGraph = "compiled_graph";

bool is_compiled_graph(const std::map<std::string, std::int64_t>& dimensions);

// Returns ", compiled graph without fusion" for a compiled graph, else "". Predictions are of a run
// op by op: Inductor's fused kernels need fewer bytes and less time.
std::string compiled_graph_words(const std::map<std::string, std::int64_t>& dimensions);

// Returns the sentence that describes a compiled graph to a reader of its plan, or "".
std::string compiled_graph_note(const std::map<std::string, std::int64_t>& dimensions);

}  // namespace rematch
