#include "reports/compare/environment_difference.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "policies/base/json.h"
#include "reports/record/json/parts_json.h"

namespace rematch {
namespace {

constexpr double kSameClock = 0.05;  // boost clocks wander by less

bool is_clock(const std::string& name) {
  return name == "sm_clock_mhz" || name == "memory_clock_mhz";
}

bool is_compared(const std::string& name) { return is_clock(name) || is_in_fingerprint(name); }

// The recorded variables that change bits or bytes. The others say where a process ran.
constexpr std::array kDecidingVariables = {
    "ATEN_CPU_CAPABILITY",    "CUBLAS_WORKSPACE_CONFIG", "MKL_CBWR",
    "NVIDIA_TF32_OVERRIDE",   "ONEDNN_MAX_CPU_ISA",      "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF"};

std::string value_of(const Environment& environment, const std::string& variable) {
  const auto found = environment.variables.find(variable);
  return found == environment.variables.end() ? "unset" : found->second;
}

std::string shown(const Json& value) {
  if (value.is_null()) return "unknown";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

bool same(const std::string& name, const Json& base, const Json& candidate) {
  if (!is_clock(name)) return base == candidate;
  if (base.is_null() || candidate.is_null()) return base == candidate;
  const double low = base.get<double>();
  return std::abs(candidate.get<double>() - low) <= kSameClock * low;
}

}  // namespace

std::vector<NamedDifference> environment_differences(const Provenance& base,
                                                     const Provenance& candidate) {
  const Json left = environment_to_json(base.environment);
  const Json right = environment_to_json(candidate.environment);
  std::vector<NamedDifference> differences;
  for (const auto& [name, value] : left.items()) {
    if (!is_compared(name) || same(name, value, right.at(name))) continue;
    differences.push_back({name, shown(value), shown(right.at(name))});
  }
  for (const char* variable : kDecidingVariables) {
    const std::string own = value_of(base.environment, variable);
    const std::string other = value_of(candidate.environment, variable);
    if (own != other) differences.push_back({variable, own, other});
  }
  if (base.execution != candidate.execution) {
    differences.push_back({"execution", base.execution, candidate.execution});
  }
  return differences;
}

PointEnvironments::PointEnvironments(const Report& base, const Report& candidate)
    : base_(base), candidate_(candidate) {
  if (base_.is_merged() || candidate_.is_merged()) return;
  known_.emplace(Pair(&base.provenance, &candidate.provenance),
                 environment_differences(base.provenance, candidate.provenance));
}

const std::vector<NamedDifference>& PointEnvironments::between(const PointRecord& base,
                                                               const PointRecord& candidate) {
  const Pair pair(&base_.of(base), &candidate_.of(candidate));
  auto found = known_.find(pair);
  if (found == known_.end()) {
    found = known_.emplace(pair, environment_differences(*pair.first, *pair.second)).first;
  }
  return found->second;
}

std::vector<NamedDifference> PointEnvironments::all() const {
  std::vector<NamedDifference> differences;
  for (const auto& [pair, between] : known_) {
    for (const NamedDifference& difference : between) {
      const bool is_named =
          std::any_of(differences.begin(), differences.end(),
                      [&](const auto& other) { return other.name == difference.name; });
      if (!is_named) differences.push_back(difference);
    }
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

std::string describe(const std::vector<NamedDifference>& differences) {
  std::string text;
  for (const NamedDifference& difference : differences) {
    text += (text.empty() ? "" : ", ") + difference.name + " " + difference.base + " and " +
            difference.candidate;
  }
  return text;
}

}  // namespace rematch
