#include "reports/compare/environment_difference.h"

#include <cmath>

#include "policies/trace/json.h"
#include "reports/record/parts_json.h"

namespace rematch {
namespace {

constexpr double kSameClock = 0.05;  // boost clocks wander by less

bool is_clock(const std::string& name) {
  return name == "sm_clock_mhz" || name == "memory_clock_mhz";
}

bool is_of_the_moment(const std::string& name) { return name == "hostname" || name == "variables"; }

std::string shown(const Json& value) {
  if (value.is_null()) return "unknown";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

bool same(const std::string& name, const Json& base, const Json& candidate) {
  if (!is_clock(name)) return base == candidate;
  if (base.is_null() || candidate.is_null()) return true;
  const double low = base.get<double>();
  return std::abs(candidate.get<double>() - low) <= kSameClock * low;
}

}  // namespace

std::vector<EnvironmentDifference> environment_differences(const Provenance& base,
                                                           const Provenance& candidate) {
  const Json left = environment_to_json(base.environment);
  const Json right = environment_to_json(candidate.environment);
  std::vector<EnvironmentDifference> differences;
  for (const auto& [name, value] : left.items()) {
    if (is_of_the_moment(name) || same(name, value, right.at(name))) continue;
    differences.push_back({name, shown(value), shown(right.at(name))});
  }
  if (base.execution != candidate.execution) {
    differences.push_back({"execution", base.execution, candidate.execution});
  }
  return differences;
}

SourceRecord describe_source(const Provenance& provenance, const std::string& file) {
  SourceRecord source;
  source.file = file;
  source.device = provenance.environment.device;
  source.fingerprint = fingerprint(provenance.environment);
  source.tool_version = provenance.tool_version;
  source.git_commit = provenance.git_commit;
  source.git_dirty = provenance.git_dirty;
  source.reproduce = provenance.reproduce;
  return source;
}

std::string describe(const std::vector<EnvironmentDifference>& differences) {
  std::string text;
  for (const EnvironmentDifference& difference : differences) {
    text += (text.empty() ? "" : ", ") + difference.name + " " + difference.base + " and " +
            difference.candidate;
  }
  return text;
}

}  // namespace rematch
