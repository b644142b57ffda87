#include "harness/run/children/turns_request.h"

#include <cstdint>
#include <utility>

#include "policies/base/field_value.h"

namespace rematch {

template <RecordOf<RoundRule> Rule, class Visit>
void visit_fields(Rule& rule, Visit visit) {
  visit("least", rule.least);
  visit("most", rule.most);
  visit("precision", rule.precision);
  visit("most_repeats", rule.most_repeats);
}

namespace {

constexpr const char* kArmsKey = "arms";

}  // namespace

Json turns_request_to_json(const TurnsRequest& request) {
  Json arms = Json::array();
  for (const PointRequest& arm : request.arms) arms.push_back(request_to_json(arm));
  return {{kArmsKey, std::move(arms)},
          {"reference", request.reference},
          {"rule", fields_to_json(request.rule)}};
}

bool is_turns_request(const Json& json) { return json.contains(kArmsKey); }

TurnsRequest turns_request_from_json(const Json& json) {
  const JsonField root(json);
  TurnsRequest request;
  for (const Json& arm : json.at(kArmsKey)) request.arms.push_back(request_from_json(arm));
  const auto last = static_cast<std::int64_t>(request.arms.size()) - 1;
  request.reference = static_cast<std::size_t>(root.at("reference").integer(0, last));
  read_fields(root.at("rule"), request.rule);
  return request;
}

}  // namespace rematch
