// "Did you mean": the nearest known name to one that a user typed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rematch {

// Insertions, deletions, replacements and swaps of neighbours that turn one into the other.
int edit_distance(std::string_view left, std::string_view right);

// The known name nearest to `text`, if one is near enough to be a slip of the hand: at most a third
// of its letters differ, or one is the start of the other. Letter case does not count.
std::optional<std::string> nearest_name(std::string_view text,
                                        const std::vector<std::string_view>& known);

// For the end of a message: "; did you mean 'full'?", or without a near name
// "; known: none, full", or nothing if nothing is known.
std::string did_you_mean(std::string_view text, const std::vector<std::string_view>& known);
std::string did_you_mean(std::string_view text, const std::vector<std::string>& known);

}  // namespace rematch
