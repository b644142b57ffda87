#include "policies/base/json.h"

#include <algorithm>

#include "policies/base/text.h"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace rematch {
namespace {

// Keys and values come from the file and may have any length. These limits keep an error readable.
constexpr std::size_t kLongestQuote = 60;
constexpr std::size_t kLongestPath = 100;
constexpr std::size_t kLongestProblem = 200;

// Returns a value as errors show it: short and on one line.
std::string quoted(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  return on_one_line(line_of(value), kLongestQuote);
}

// Returns whether `wanted` is `root` or is inside it. If so, appends the keys and indices of the
// path from `root` to `wanted`, innermost first.
bool find_steps(const Json& root, const Json* wanted, std::vector<std::string>& steps) {
  if (&root == wanted) return true;
  if (root.is_object()) {
    for (const auto& [key, member] : root.get_ref<const Json::object_t&>()) {
      if (!find_steps(member, wanted, steps)) continue;
      steps.push_back(std::string(".").append(key));
      return true;
    }
  } else if (root.is_array()) {
    for (std::size_t index = 0; index < root.size(); ++index) {
      if (!find_steps(root[index], wanted, steps)) continue;
      steps.push_back(std::string("[").append(std::to_string(index)).append("]"));
      return true;
    }
  }
  return false;
}

bool is_number_text(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

void require_schema(const Json& json, std::string_view kind) {
  const std::string prefix = schema_prefix(kind);
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

Json& add_member(Json::object_t& object, std::string key, Json value) {
  if (object.size() == object.capacity()) {
    Json::object_t larger;
    larger.reserve(std::max<std::size_t>(1, 2 * object.size()));
    for (auto& [known, member] : object) larger.emplace_back(known, std::move(member));
    object.swap(larger);
  }
  object.emplace_back(std::move(key), std::move(value));
  return object.back().second;
}

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

std::string JsonField::path() const {
  std::vector<std::string> steps;
  find_steps(*root_, value_, steps);
  std::string path = root_path_ == nullptr ? "" : *root_path_;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) path += *step;
  return on_one_line(std::string_view(path).substr(path.starts_with('.') ? 1 : 0), kLongestPath);
}

JsonField JsonField::at(std::string_view key) const {
  if (const std::optional<JsonField> field = find(key)) return *field;
  fail("key \"" + std::string(key) + "\" is missing");
}

JsonField JsonField::at(std::string_view key, std::string_view former_key) const {
  const std::optional<JsonField> former = find(former_key);
  return former ? *former : at(key);
}

std::optional<JsonField> JsonField::find(std::string_view key) const {
  require_object();
  const auto found = value_->find(key);
  if (found == value_->end()) return std::nullopt;
  return JsonField(*found, *this);
}

void JsonField::require_object() const {
  if (!value_->is_object()) fail_type("an object");
}

std::vector<std::pair<const std::string*, JsonField>> JsonField::members() const {
  require_object();
  std::vector<std::pair<const std::string*, JsonField>> members;
  members.reserve(value_->size());
  for (const auto& [key, member] : value_->get_ref<const Json::object_t&>()) {
    members.emplace_back(&key, JsonField(member, *this));
  }
  return members;
}

void JsonField::require_known_keys(const std::vector<std::string_view>& known) const {
  require_object();
  for (const auto& [key, value] : value_->items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string shown = on_one_line(key, kLongestQuote);
    fail("unknown key \"" + shown + "\"" + did_you_mean(shown, known));
  }
}

std::size_t JsonField::size() const {
  if (!value_->is_array()) fail_type("a list");
  return value_->size();
}

JsonField JsonField::at(std::size_t index) const {
  if (index >= size()) fail("has " + std::to_string(size()) + " elements; too few");
  return JsonField((*value_)[index], *this);
}

std::vector<JsonField> JsonField::elements() const {
  std::vector<JsonField> fields;
  fields.reserve(size());
  for (const Json& element : *value_) fields.push_back(JsonField(element, *this));
  return fields;
}

std::int64_t JsonField::integer(std::int64_t min, std::int64_t max) const {
  if (!value_->is_number_integer()) fail_type("a whole number");
  const bool too_large = value_->is_number_unsigned() &&
                         value_->get<std::uint64_t>() > static_cast<std::uint64_t>(kMax);
  const std::int64_t number = too_large ? kMax : value_->get<std::int64_t>();
  if (too_large || number < min || number > max) {
    fail(quoted(*value_) + " is out of range; allowed: " + std::to_string(min) + " to " +
         std::to_string(max));
  }
  return number;
}

std::int32_t JsonField::integer32(std::int32_t min, std::int32_t max) const {
  return static_cast<std::int32_t>(integer(min, max));
}

std::int64_t JsonField::count() const { return integer(0, kLargestInteger); }

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
  const std::string path = this->path();
  const std::string line = on_one_line(problem, kLongestProblem);
  throw FormatError(path.empty() ? line : path + ": " + line);
}

void JsonField::fail_type(std::string_view expected) const {
  fail("found " + quoted(*value_) + "; expected " + std::string(expected));
}

std::string schema_prefix(std::string_view kind) {
  return std::string("rematch.").append(kind).append("/").append(std::to_string(Schema::kMajor)) +
         ".";
}

std::string schema_name(const Schema& schema) {
  return schema_prefix(schema.kind) + std::to_string(schema.minor);
}

}  // namespace rematch
