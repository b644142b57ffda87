// Enumerations whose enumerators appear as words in files, flags and tables. Each enumeration lists
// its words once:
//   template <>
//   inline constexpr std::array<std::string_view, 2> kWords<Schedule> = {"whole_region", ...};
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

namespace rematch {

// The words of the enumeration in the order of its enumerators, which must count from 0.
template <class T>
inline constexpr std::array<std::string_view, 0> kWords = {};

template <class T>
concept Word = std::is_enum_v<T> && !kWords<T>.empty();

// All enumerators, in order.
template <Word T>
inline constexpr auto kAll = [] {
  std::array<T, kWords<T>.size()> all{};
  for (std::size_t index = 0; index < all.size(); ++index) all[index] = static_cast<T>(index);
  return all;
}();

// Returns all words of the enumeration, for messages.
template <Word T>
std::vector<std::string_view> all_words() {
  return {kWords<T>.begin(), kWords<T>.end()};
}

template <Word T>
constexpr std::string_view to_string(T word) {
  return kWords<T>.at(static_cast<std::size_t>(word));
}

// Returns nullopt if no enumerator has this word.
template <Word T>
constexpr std::optional<T> from_string(std::string_view text) {
  const auto found = std::find(kWords<T>.begin(), kWords<T>.end(), text);
  if (found == kWords<T>.end()) return std::nullopt;
  return static_cast<T>(found - kWords<T>.begin());
}

}  // namespace rematch
