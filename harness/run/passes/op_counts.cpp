#include "harness/run/passes/op_counts.h"

#include "policies/trace/trace_op.h"

namespace rematch {
namespace {

std::int64_t count_of(const std::map<std::string, std::int64_t>& counts, const std::string& op) {
  const auto found = counts.find(op);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

std::optional<CountDifference> first_difference(const OpCounts& one, const OpCounts& other) {
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    const std::map<std::string, std::int64_t> ones = with_one_name(one[phase]);
    const std::map<std::string, std::int64_t> others = with_one_name(other[phase]);
    std::map<std::string, std::int64_t> all = ones;
    all.insert(others.begin(), others.end());
    for (const auto& [op, unused] : all) {
      const CountDifference found{op, static_cast<Phase>(phase), count_of(ones, op),
                                  count_of(others, op)};
      if (found.one != found.other) return found;
    }
  }
  return std::nullopt;
}

}  // namespace rematch
