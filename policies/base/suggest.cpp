#include "policies/base/suggest.h"

#include <algorithm>

namespace rematch {
namespace {

// A prefix shorter than this says too little: `n` is not a way to write `none`.
constexpr std::size_t kShortestPrefix = 3;

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool is_start(std::string_view text, std::string_view name) {
  const std::size_t shorter = std::min(text.size(), name.size());
  return shorter >= kShortestPrefix && text.substr(0, shorter) == name.substr(0, shorter);
}

}  // namespace

int edit_distance(std::string_view left, std::string_view right) {
  const std::size_t width = right.size() + 1;
  std::vector<int> before_previous(width), previous(width), current(width);
  for (std::size_t column = 0; column < width; ++column) current[column] = static_cast<int>(column);
  for (std::size_t row = 1; row <= left.size(); ++row) {
    before_previous.swap(previous);
    previous.swap(current);
    current[0] = static_cast<int>(row);
    for (std::size_t column = 1; column < width; ++column) {
      const bool same = left[row - 1] == right[column - 1];
      current[column] = std::min(
          {previous[column] + 1, current[column - 1] + 1, previous[column - 1] + (same ? 0 : 1)});
      if (row > 1 && column > 1 && left[row - 1] == right[column - 2] &&
          left[row - 2] == right[column - 1]) {
        current[column] = std::min(current[column], before_previous[column - 2] + 1);
      }
    }
  }
  return current.back();
}

std::optional<std::string> nearest_name(std::string_view text,
                                        const std::vector<std::string_view>& known) {
  const std::string typed = lower_case(text);
  std::optional<std::string> nearest;
  int nearest_distance = 0;
  for (const std::string_view name : known) {
    const std::string candidate = lower_case(name);
    int distance = edit_distance(typed, candidate);
    const int allowed = std::max(1, static_cast<int>(std::max(typed.size(), candidate.size())) / 3);
    // A name begun but not finished is worse than any slip, and better than nothing.
    if (distance > allowed) {
      if (!is_start(typed, candidate)) continue;
      distance += allowed;
    }
    if (!nearest || distance < nearest_distance) {
      nearest = std::string(name);
      nearest_distance = distance;
    }
  }
  return nearest;
}

std::string did_you_mean(std::string_view text, const std::vector<std::string_view>& known) {
  if (const auto nearest = nearest_name(text, known)) return "; did you mean '" + *nearest + "'?";
  std::string message;
  for (const std::string_view name : known) {
    message.append(message.empty() ? "; known: " : ", ").append(name);
  }
  return message;
}

std::string did_you_mean(std::string_view text, const std::vector<std::string>& known) {
  return did_you_mean(text, std::vector<std::string_view>(known.begin(), known.end()));
}

}  // namespace rematch
