// Counts, bytes and times by name: records leave out what is 0.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include "policies/trace/phase.h"

namespace rematch {

// The amount under a name; 0 if there is none.
template <class Amounts>
typename Amounts::mapped_type amount_of(const Amounts& amounts,
                                        const typename Amounts::key_type& name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? typename Amounts::mapped_type{} : found->second;
}

// The same in one phase.
template <class ByPhase>
auto amount_of(const ByPhase& by_phase, Phase phase,
               const typename ByPhase::value_type::key_type& name) {
  return amount_of(by_phase[static_cast<std::size_t>(phase)], name);
}

// "matmul", of a text or of an enumeration.
template <class Name>
std::string name_text(const Name& name) {
  if constexpr (std::is_enum_v<Name>) {
    return std::string(to_string(name));
  } else {
    return name;
  }
}

}  // namespace rematch
