// One preset for each family, NAME_small, that runs in a few seconds. Tests over all models use
// these.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/preset/preset.h"

namespace rematch::testing {

inline std::vector<std::string> small_presets() {
  std::vector<std::string> names;
  for (const PresetEntry& preset : presets()) {
    if (preset.name.ends_with("_small")) names.emplace_back(preset.name);
  }
  return names;
}

// Throws std::logic_error if the cases of a test do not include every family.
template <class Case>
void require_every_family(const std::vector<Case>& cases) {
  for (const std::string& name : small_presets()) {
    const auto is_its = [&name](const Case& each) { return each.preset == name; };
    if (!std::any_of(cases.begin(), cases.end(), is_its)) {
      throw std::logic_error("the list of models lacks " + name);
    }
  }
}

}  // namespace rematch::testing
