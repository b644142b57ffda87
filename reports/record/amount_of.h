// Looks up counts, bytes and times by name. Records leave out names whose amount is 0.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "policies/trace/phase.h"

namespace rematch {

// Returns the count, bytes or time with this name, or 0 if the name is absent.
template <class Amounts>
typename Amounts::mapped_type amount_of(const Amounts& amounts,
                                        const typename Amounts::key_type& name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? typename Amounts::mapped_type{} : found->second;
}

// Returns the count, bytes or time with this name in one phase.
template <class ByPhase>
auto amount_of(const ByPhase& by_phase, Phase phase,
               const typename ByPhase::value_type::key_type& name) {
  return amount_of(by_phase[static_cast<std::size_t>(phase)], name);
}

// Finds the first phase and name whose values per step differ. `base` and `candidate` are totals
// over their numbers of steps. An absent name counts as 0. If `only` is set, compares only that
// phase.
template <class Key, class Amount>
std::optional<std::pair<Phase, Key>> first_difference(
    const std::array<std::map<Key, Amount>, kNumPhases>& base, int base_steps,
    const std::array<std::map<Key, Amount>, kNumPhases>& candidate, int candidate_steps,
    std::optional<Phase> only = std::nullopt) {
  for (const Phase phase : kPhases) {
    if (only && phase != *only) continue;
    std::map<Key, Amount> all = base[static_cast<std::size_t>(phase)];
    const std::map<Key, Amount>& others = candidate[static_cast<std::size_t>(phase)];
    all.insert(others.begin(), others.end());
    for (const auto& [key, unused] : all) {
      if (static_cast<double>(amount_of(base, phase, key)) * candidate_steps !=
          static_cast<double>(amount_of(others, key)) * base_steps) {
        return std::pair(phase, key);
      }
    }
  }
  return std::nullopt;
}

// Converts a name to text. The name is an enumerator or already a string, such as "matmul".
template <class Name>
std::string name_text(const Name& name) {
  if constexpr (std::is_enum_v<Name>) {
    return std::string(to_string(name));
  } else {
    return name;
  }
}

}  // namespace rematch
