#include <algorithm>

#include "reports/record/by_phase.h"

namespace rematch {

std::optional<Phase> phase_from_string(std::string_view text) {
  const auto* found = std::find_if(kPhases.begin(), kPhases.end(),
                                   [text](Phase phase) { return to_string(phase) == text; });
  if (found == kPhases.end()) return std::nullopt;
  return *found;
}

}  // namespace rematch
