#include "reports/record/holder.h"

#include <algorithm>
#include <cstddef>

namespace rematch {

std::string_view to_string(Holder holder) {
  constexpr std::array<std::string_view, kHolders.size()> kNames = {
      "parameters",        "gradients",           "optimizer", "frozen_parameters",
      "saved_activations", "recompute_transient", "other"};
  return kNames.at(static_cast<std::size_t>(holder));
}

std::optional<Holder> holder_from_string(std::string_view text) {
  const auto* found = std::find_if(kHolders.begin(), kHolders.end(),
                                   [text](Holder holder) { return to_string(holder) == text; });
  if (found == kHolders.end()) return std::nullopt;
  return *found;
}

}  // namespace rematch
