#include "policies/trace/by_phase.h"

#include <algorithm>

namespace rematch {

std::optional<Phase> phase_from_string(std::string_view text) {
  const auto* found = std::find_if(kPhases.begin(), kPhases.end(),
                                   [text](Phase phase) { return to_string(phase) == text; });
  if (found == kPhases.end()) return std::nullopt;
  return *found;
}

void read_value(const JsonField& field, Phase& phase) {
  phase = read_word(field, kPhases, "not a phase");
}

}  // namespace rematch
