#include "policies/base/field_value.h"

#include <cmath>

#include "policies/base/json.h"

namespace rematch {
namespace {

// The time that a clock in nanoseconds holds: 34 years.
constexpr std::int64_t kLongestMilliseconds = std::int64_t{1} << 40;

}  // namespace

void require_not_negative(const JsonField& field) {
  if (!field.json().is_array()) return static_cast<void>(field.integer32(0));
  for (const JsonField& element : field.elements()) require_not_negative(element);
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
  value = std::chrono::milliseconds(field.integer(0, kLongestMilliseconds));
}

Json to_value(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json number_to_json(std::optional<double> number) {
  if (!number || !std::isfinite(*number)) return nullptr;
  const bool whole = std::abs(*number) <= double{kLargestInteger} && std::trunc(*number) == *number;
  return whole ? Json(static_cast<std::int64_t>(*number)) : Json(*number);
}

}  // namespace rematch
