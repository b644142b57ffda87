// Identity of a point as JSON, and the words for its status.
#include <algorithm>
#include <array>
#include <concepts>

#include "policies/base/field_value.h"
#include "policies/base/hashing.h"
#include "policies/base/json.h"
#include "policies/trace/by_phase.h"
#include "reports/record/json/parts_json.h"
#include "reports/record/point.h"

namespace rematch {
namespace {

constexpr std::array kStatuses = {PointStatus::kOk,      PointStatus::kOom,
                                  PointStatus::kTimeout, PointStatus::kCrash,
                                  PointStatus::kSkipped, PointStatus::kInvalid};

// Lengths keep the parts of a label apart.
void add_part(std::string& label, std::string_view part) {
  label.append(std::to_string(part.size())).append(":").append(part);
}
void add_part(std::string& label, Schedule schedule) { add_part(label, to_string(schedule)); }
template <std::integral Number>
void add_part(std::string& label, Number number) {
  add_part(label, std::to_string(number));
}
void add_part(std::string& label, const std::optional<int>& number) {
  add_part(label, number ? std::to_string(*number) : "");
}
void add_part(std::string& label, const std::map<std::string, std::int64_t>& sizes) {
  add_part(label, sizes.size());
  for (const auto& [name, size] : sizes) {
    add_part(label, name);
    add_part(label, size);
  }
}

}  // namespace

std::string_view to_string(PointStatus status) {
  constexpr std::array<std::string_view, kStatuses.size()> kNames = {"ok",    "oom",     "timeout",
                                                                     "crash", "skipped", "invalid"};
  return kNames.at(static_cast<std::size_t>(status));
}

Json to_value(PointStatus status) { return to_string(status); }

void read_value(const JsonField& field, PointStatus& status) {
  status = read_word(field, kStatuses, "not a status");
}

Json identity_to_json(const PointIdentity& identity) { return to_value(identity); }

PointIdentity identity_from_json(const JsonField& field) {
  PointIdentity identity;
  read_value(field, identity);
  return identity;
}

std::string point_key(const PointIdentity& identity) {
  return canonical_sha256(identity_to_json(identity));
}

std::string label_of(const PointIdentity& identity, std::initializer_list<std::string_view> but) {
  std::string label;
  label.reserve(256);  // of most points
  visit_fields(identity, [&](const Field& field, const auto& member) {
    if (std::find(but.begin(), but.end(), field.key) == but.end()) add_part(label, member);
  });
  return label;
}

}  // namespace rematch
