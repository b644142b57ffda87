#include "policies/trace/json.h"

#include <algorithm>

#include "policies/trace/suggest.h"

namespace rematch {
namespace {

constexpr std::size_t kLongestQuote = 60;

// A value as an error shows it: short, on one line.
std::string quoted(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  if (text.size() > kLongestQuote) text = text.substr(0, kLongestQuote) + "...";
  return text;
}

bool is_number_text(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string schema_prefix(std::string_view kind, int major) {
  return std::string("rematch.").append(kind).append("/").append(std::to_string(major)).append(".");
}

void require_schema(const Json& json, std::string_view kind, int major) {
  const std::string prefix = schema_prefix(kind, major);
  const std::string expected = "this build reads '" + prefix + "x'";
  if (!json.is_object()) throw FormatError("a JSON object is expected; " + expected);
  const auto found = json.find("schema");
  if (found == json.end() || !found->is_string()) {
    throw FormatError("file has no \"schema\" key; " + expected);
  }
  const std::string schema = found->get<std::string>();
  if (!schema.starts_with(prefix) ||
      !is_number_text(std::string_view(schema).substr(prefix.size()))) {
    throw FormatError("file has schema " + quoted(*found) + "; " + expected);
  }
}

JsonField::JsonField(const Json& value, std::string path)
    : value_(&value), path_(std::move(path)) {}

JsonField JsonField::at(std::string_view key) const {
  if (auto field = find(key)) return *std::move(field);
  fail("key \"" + std::string(key) + "\" is missing");
}

std::optional<JsonField> JsonField::find(std::string_view key) const {
  require_object();
  const auto found = value_->find(key);
  if (found == value_->end()) return std::nullopt;
  std::string path = path_;
  if (!path.empty()) path += '.';
  path += key;
  return JsonField(*found, std::move(path));
}

void JsonField::require_object() const {
  if (!value_->is_object()) fail_type("an object");
}

void JsonField::require_known_keys(std::initializer_list<std::string_view> known) const {
  require_object();
  for (const auto& [key, value] : value_->items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    fail("unknown key \"" + key + "\"" + did_you_mean(key, std::vector<std::string_view>(known)));
  }
}

std::size_t JsonField::size() const {
  if (!value_->is_array()) fail_type("a list");
  return value_->size();
}

JsonField JsonField::at(std::size_t index) const {
  if (index >= size()) fail("has " + std::to_string(size()) + " elements; too few");
  return JsonField((*value_)[index], path_ + "[" + std::to_string(index) + "]");
}

std::vector<JsonField> JsonField::elements() const {
  std::vector<JsonField> fields;
  fields.reserve(size());
  for (std::size_t index = 0; index < value_->size(); ++index) fields.push_back(at(index));
  return fields;
}

std::int64_t JsonField::integer(std::int64_t min, std::int64_t max) const {
  if (!value_->is_number_integer()) fail_type("a whole number");
  const bool too_large = value_->is_number_unsigned() &&
                         value_->get<std::uint64_t>() > static_cast<std::uint64_t>(kMax);
  const std::int64_t number = too_large ? kMax : value_->get<std::int64_t>();
  if (too_large || number < min || number > max) {
    fail(quoted(*value_) + " is out of range; allowed are " + std::to_string(min) + " to " +
         std::to_string(max));
  }
  return number;
}

std::int32_t JsonField::integer32(std::int32_t min, std::int32_t max) const {
  return static_cast<std::int32_t>(integer(min, max));
}

double JsonField::number() const {
  if (!value_->is_number()) fail_type("a number");
  return value_->get<double>();
}

bool JsonField::boolean() const {
  if (!value_->is_boolean()) fail_type("true or false");
  return value_->get<bool>();
}

const std::string& JsonField::string() const {
  if (!value_->is_string()) fail_type("a string");
  return value_->get_ref<const std::string&>();
}

std::vector<std::string> JsonField::strings() const {
  std::vector<std::string> texts;
  for (const JsonField& element : elements()) texts.push_back(element.string());
  return texts;
}

void JsonField::fail(const std::string& problem) const {
  throw FormatError(path_.empty() ? problem : path_ + ": " + problem);
}

void JsonField::fail_type(std::string_view expected) const {
  fail("found " + quoted(*value_) + "; expected " + std::string(expected));
}

}  // namespace rematch
