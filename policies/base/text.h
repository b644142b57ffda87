// Text helpers: format and parse lists, quote user input in messages, and find the known name
// nearest to an input.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace rematch {

// The next functions shorten and escape text from a user or a file, so that it fits into a one-line
// message.

// Returns the text in single quotes. Control characters become \n, \t or \x1b. Text longer than a
// line is truncated.
std::string in_quotes(std::string_view text);

// Returns the escaped text without quotes. Shortens text longer than `longest` bytes in the middle,
// because the end of an error message says what to do.
std::string on_one_line(std::string_view text, std::size_t longest);

// Joins the parts with `separator`: "mm, bmm". `Parts` is any range of strings.
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

// Replaces every `hole` in the text by `value`.
std::string filled_in(std::string_view text, std::string_view hole, std::string_view value);

// The next functions parse lists as a user types them: `a, b(1,2), c([0,2])`.

// Removes spaces and line breaks from both ends.
std::string_view trimmed(std::string_view text);

// Splits at commas outside brackets and trims the parts. "" gives one empty part. Returns nullopt
// if the brackets are unbalanced.
std::optional<std::vector<std::string_view>> split_at_commas(std::string_view text);

// Parses all of `text` as one number, like std::from_chars. Returns nullopt if `text` is not a
// number.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

// Counts the edits that turn one text into the other. An edit inserts, deletes or replaces a
// letter, or swaps two adjacent letters.
int edit_distance(std::string_view left, std::string_view right);

// Returns whether two words of equal length are probably different names and not misspellings of
// each other. This is so if they are short or contain digits: "cp" and "tp", "v100" and "h100".
bool are_different_words(std::string_view left, std::string_view right,
                         std::size_t short_letters = 3);

// Returns the known name nearest to `text` if `text` may be a typing mistake. A name is near if at
// most a third of the letters differ, or if one is a prefix of the other. Ignores letter case.
std::optional<std::string> nearest_name(std::string_view text,
                                        const std::vector<std::string_view>& known);

// Returns text to append to an error message: "; did you mean 'full'?", or "; known: none, full" if
// no name is near, or "" if no name is known.
std::string did_you_mean(std::string_view text, const std::vector<std::string_view>& known);
std::string did_you_mean(std::string_view text, const std::vector<std::string>& known);

}  // namespace rematch
