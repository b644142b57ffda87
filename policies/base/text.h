// Text: lists in a sentence or from a flag, what a user typed as a message shows it, and the known
// name that is nearest to it.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace rematch {

// Text that a user typed or a file holds, as a message of one line shows it.

// 'text' in single quotes; control characters become \n, \t or \x1b, and what is longer than a line
// is cut.
std::string in_quotes(std::string_view text);

// The same without quotes. Of what is longer than `longest` bytes the middle is left out, since a
// message says at its end what to do.
std::string on_one_line(std::string_view text, std::size_t longest);

// A list of texts in a sentence, a table's cell or a line.

// The parts in order with `separator` between them: "mm, bmm". Of any range of strings.
template <class Parts>
std::string joined(const Parts& parts, std::string_view separator = ", ") {
  std::string text;
  std::string_view before;
  for (const std::string_view part : parts) {
    text.append(before).append(part);
    before = separator;
  }
  return text;
}

// The text with `value` in place of every `hole`.
std::string filled_in(std::string_view text, std::string_view hole, std::string_view value);

// Lists as a user types them: `a, b(1,2), c([0,2])`.

// Without blanks and line ends at either end.
std::string_view trimmed(std::string_view text);

// Trimmed parts between commas outside brackets; "" gives one empty part. nullopt: brackets do not
// pair.
std::optional<std::vector<std::string_view>> split_at_commas(std::string_view text);

// The number that is all of `text`, as std::from_chars reads it; nothing where it is none.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

// "Did you mean": the nearest known name to one that a user typed.

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
