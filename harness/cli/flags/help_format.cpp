#include "harness/cli/flags/help_format.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "policies/base/format.h"

namespace rematch {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kDescriptionColumn = 30;  // column where descriptions begin

// Wraps the description. CLI11 itself indents the lines after a line break.
std::string wrapped_description(const std::string& text) {
  std::string lines;
  for (const std::string& line : wrap(text, kWidth - kDescriptionColumn)) {
    lines += (lines.empty() ? "" : "\n") + line;
  }
  return lines;
}

// Returns whether the option takes a whole number. CLI11 names the type of such an option "INT" or,
// if the range is checked, "INT:INT in [1 - 16]".
bool is_number(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.starts_with("INT") || type.starts_with("UINT");
}

// Returns a range such as "1 to 16". Returns an empty text if any value is allowed.
std::string range_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('[');
  const std::size_t dash = type.find(" - ");
  if (open == std::string::npos || dash == std::string::npos || type.back() != ']') return "";
  return type.substr(open + 1, dash - open - 1) + " to " +
         type.substr(dash + 3, type.size() - dash - 4);
}

// Returns a text such as "default: 4", "required" or "no default". Returns an empty text for flags
// without a value, positional arguments, and options whose description or heading states the
// default.
std::string default_of(const CLI::Option& option) {
  const bool has_heading = option.get_group().find("default") != std::string::npos;
  if (option.get_type_name().empty() || option.get_positional() || has_heading) return "";
  if (option.get_required()) return "required";
  const std::string value = option.get_default_str();
  if (option.get_description().find("(default") != std::string::npos) return "";
  return value.empty() || value == "[]" ? "no default" : "default: " + value;
}

// Returns the description, followed by the range and the default in one pair of brackets.
std::string described(const CLI::Option& option) {
  const std::string text = option.get_description();
  const std::string range = range_of(option);
  const std::string value = default_of(option);
  if (range.empty() && value.empty()) return text;
  constexpr std::string_view kOwnDefault = " (default";
  const std::size_t own = text.find(kOwnDefault);
  if (own != std::string::npos) {
    return range.empty() ? text : text.substr(0, own) + " (" + range + "; " + text.substr(own + 2);
  }
  return text + " (" + range + (range.empty() || value.empty() ? "" : "; ") + value + ")";
}

}  // namespace

HelpFormat::HelpFormat() { column_width(kDescriptionColumn); }

std::string HelpFormat::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_name().empty()) return "";  // the option is a flag without a value
  const bool takes_many = option->get_expected_max() == CLI::detail::expected_max_vector_size;
  return std::string(is_number(*option) ? " N" : " TEXT") + (takes_many ? " ..." : "");
}

std::string HelpFormat::make_option_desc(const CLI::Option* option) const {
  return wrapped_description(described(*option));
}

std::string HelpFormat::make_subcommand(const CLI::App* command) const {
  std::string line = "  " + command->get_display_name(true);
  line.resize(std::max(line.size() + 1, kDescriptionColumn), ' ');
  std::string text = wrapped_description(command->get_description());
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
    text.insert(at + 1, std::string(kDescriptionColumn, ' '));
  }
  return line + text + "\n";
}

}  // namespace rematch
