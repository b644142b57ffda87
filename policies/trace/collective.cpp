#include "policies/trace/collective.h"

#include <algorithm>
#include <array>

#include "policies/trace/trace.h"

namespace rematch {
namespace {

constexpr std::string_view kFunctional = "_c10d_functional::";
constexpr std::array<std::string_view, kNumCollectiveKinds> kNames = {
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"};

}  // namespace

std::string_view to_string(CollectiveKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::optional<CollectiveKind> collective_kind_from_string(std::string_view text) {
  const auto found = std::find(kNames.begin(), kNames.end(), text);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<CollectiveKind>(found - kNames.begin());
}

std::optional<CollectiveKind> collective_kind(std::string_view name) {
  if (!name.starts_with(kFunctional)) return std::nullopt;
  name.remove_prefix(kFunctional.size());
  for (std::size_t kind = 0; kind < kNames.size(); ++kind) {
    if (name.starts_with(kNames[kind])) return static_cast<CollectiveKind>(kind);
  }
  return std::nullopt;
}

bool is_parameter_gather(const Trace& trace, const TracedOp& op) {
  return collective_kind(op.name) == CollectiveKind::kAllGather && !op.inputs.empty() &&
         std::all_of(op.inputs.begin(), op.inputs.end(),
                     [&](const TracedUse& use) { return !trace.values[use.value].producer; });
}

CollectivePart collective_part(std::string_view name) {
  if (name.starts_with("_c10d_functional::wait_tensor")) return CollectivePart::kWait;
  if (name.starts_with("_c10d_functional::")) return CollectivePart::kStart;
  if (name.starts_with("c10d::")) return CollectivePart::kStartWithHandle;
  return CollectivePart::kNothing;
}

}  // namespace rematch
