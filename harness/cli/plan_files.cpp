#include "harness/cli/plan_files.h"

#include <charconv>
#include <utility>
#include <vector>

#include "harness/cli/require.h"
#include "policies/plan/plan_json.h"
#include "policies/search/front_json.h"
#include "policies/trace/json.h"

namespace rematch {
namespace {

bool is_front(const Json& json) {
  return json.is_object() && json.contains("schema") && json["schema"].is_string() &&
         json["schema"].get<std::string>().starts_with("rematch.front/");
}

Plan point_of(const Json& json, const std::string& file, const std::string& number) {
  std::vector<FrontPoint> points = front_from_json(json).front.points;
  const std::string range = "its points are 0 to " + std::to_string(points.size() - 1);
  if (number.empty()) {
    throw UsageError("'" + file + "' is a front; say which point of it: " + file + "#0; " + range);
  }
  std::size_t index = 0;
  const char* end = number.data() + number.size();
  const auto [rest, error] = std::from_chars(number.data(), end, index);
  if (error != std::errc() || rest != end || index >= points.size()) {
    throw UsageError("'" + file + "' has no point " + number + "; " + range);
  }
  return std::move(points[index].plan);
}

}  // namespace

Plan require_plan(const std::string& name) {
  const std::size_t hash = name.rfind('#');
  const std::string file = name.substr(0, hash);
  const std::string number = hash == std::string::npos ? "" : name.substr(hash + 1);
  const Json json = require_json_file(file);
  if (is_front(json)) return point_of(json, file, number);
  if (!number.empty()) {
    throw UsageError("'" + file + "' is a plan, not a front: it has no points; leave out #" +
                     number);
  }
  return plan_from_json(json);
}

}  // namespace rematch
