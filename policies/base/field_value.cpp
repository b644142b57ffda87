#include "policies/base/field_value.h"

#include <cmath>

#include "policies/base/json.h"
#include "policies/base/text.h"

namespace rematch {
namespace {

// The longest time that a file may contain is about 34 years. Sums of a few such times still fit in
// 64 bits.
constexpr std::chrono::nanoseconds kLongestTime = std::chrono::milliseconds(std::int64_t{1} << 40);

constexpr std::size_t kFewWords = 10;

// Throws FormatError if the field is a negative integer, or a list that contains a negative
// integer.
void require_not_negative(const JsonField& field) {
  if (!field.json().is_array()) return static_cast<void>(field.integer32(0));
  for (const JsonField& element : field.elements()) require_not_negative(element);
}

}  // namespace

std::optional<JsonField> value_of_field(const JsonField& object, const Field& field) {
  std::optional<JsonField> found = object.find(field.key);
  if (!found && field.former != nullptr) found = object.find(field.former);
  if (!found && field.has(kLater)) return std::nullopt;
  const JsonField value = found ? *found : object.at(field.key);
  if (field.has(kNullIfEmpty) && value.is_null()) return std::nullopt;
  if (field.has(kNotNegative)) require_not_negative(value);
  return value;
}

void put_field(Json& object, const Field& field, Json value) {
  if (object.is_null()) object = Json::object();
  const auto known = object.find(field.key);
  if (known != object.end()) {
    *known = std::move(value);
  } else {
    add_member(object.get_ref<Json::object_t&>(), field.key, std::move(value));
  }
}

void fail_unknown_word(const JsonField& field, const std::vector<std::string_view>& words) {
  const std::string& text = field.string();
  if (words.size() > kFewWords) field.fail("'" + text + "' is unknown" + did_you_mean(text, words));
  field.fail("'" + text + "' is not one of " + joined(words));
}

void read_value(const JsonField& field, bool& value) { value = field.boolean(); }
void read_value(const JsonField& field, int& value) { value = field.integer32(0); }
void read_value(const JsonField& field, std::int64_t& value) { value = field.count(); }
void read_value(const JsonField& field, std::uint64_t& value) {
  value = static_cast<std::uint64_t>(field.count());
}
void read_value(const JsonField& field, double& value) { value = field.number(); }
void read_value(const JsonField& field, std::string& value) { value = field.string(); }
void read_value(const JsonField& field, Bytes& value) { value = Bytes{field.count()}; }
void read_value(const JsonField& field, std::chrono::nanoseconds& value) {
  value = std::chrono::nanoseconds(field.count());
}
void read_value(const JsonField& field, std::chrono::milliseconds& value) {
  value = std::chrono::floor<std::chrono::milliseconds>(
      std::chrono::nanoseconds(field.integer(0, kLongestTime.count())));
}

Json to_value(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json number_to_json(std::optional<double> number) {
  if (!number || !std::isfinite(*number)) return nullptr;
  const bool whole = std::abs(*number) <= double{kLargestInteger} && std::trunc(*number) == *number;
  return whole ? Json(static_cast<std::int64_t>(*number)) : Json(*number);
}

}  // namespace rematch
