#include "policies/trace/compiled_graph.h"

namespace rematch {

bool is_compiled_graph(const std::map<std::string, std::int64_t>& dimensions) {
  return dimensions.contains(std::string(kCompiledGraph));
}

std::string compiled_graph_words(const std::map<std::string, std::int64_t>& dimensions) {
  return is_compiled_graph(dimensions) ? ", compiled graph without fusion" : "";
}

std::string compiled_graph_note(const std::map<std::string, std::int64_t>& dimensions) {
  if (!is_compiled_graph(dimensions)) return "";
  return "ops and bytes are those of the joint graph of a compiled model, run op by op without "
         "fusion; only rematch.partitioner in Python can follow the plan";
}

}  // namespace rematch
