#include "reports/compare/differences.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>

#include "policies/base/field_value.h"
#include "policies/base/json.h"
#include "policies/trace/by_phase.h"
#include "reports/record/amount_of.h"
#include "reports/record/point.h"

namespace rematch {
namespace {

constexpr double kSameClock = 0.05;  // the boost clock of a card varies by less than this ratio

bool is_clock(const std::string& name) {
  return name == "sm_clock_mhz" || name == "memory_clock_mhz";
}

bool is_compared(const std::string& name) { return is_clock(name) || is_in_fingerprint(name); }

// The environment variables that change bits or bytes.
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
  const Json left = to_value(base.environment);
  const Json right = to_value(candidate.environment);
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

namespace {

// nearest() examines at most this many points of a policy and model. The limit keeps comparisons of
// large reports fast.
constexpr std::size_t kMaxExamined = 64;

using IdentityParts = std::vector<std::pair<std::string, std::string>>;

IdentityParts parts_of(const PointIdentity& identity) {
  return {{"data", identity.data},
          {"seed", std::to_string(identity.seed)},
          {"schedule", std::string(to_string(identity.schedule))},
          {"ops", identity.ops},
          {"attention_backend", identity.attention_backend},
          {"dtype", identity.dtype},
          {"optimizer", identity.optimizer},
          {"deterministic", identity.deterministic ? "true" : "false"},
          {"allocator", identity.allocator},
          {"threads", std::to_string(identity.threads)},
          {"world", std::to_string(identity.world)},
          {"pretended rank",
           identity.pretended_rank ? std::to_string(*identity.pretended_rank) : "none"}};
}

std::string dimension_of(const PointIdentity& identity, const std::string& name) {
  const auto found = identity.dimensions.find(name);
  return found == identity.dimensions.end() ? "absent" : std::to_string(found->second);
}

}  // namespace

std::vector<NamedDifference> identity_differences(const PointIdentity& base,
                                                  const PointIdentity& candidate) {
  std::vector<NamedDifference> differences;
  const auto compare = [&differences](const std::string& name, const std::string& own,
                                      const std::string& other) {
    if (own != other) differences.push_back({name, own, other});
  };
  std::map<std::string, std::int64_t> names = base.dimensions;
  names.insert(candidate.dimensions.begin(), candidate.dimensions.end());
  for (const auto& [name, value] : names) {
    compare(name, dimension_of(base, name), dimension_of(candidate, name));
  }
  const IdentityParts own = parts_of(base);
  const IdentityParts others = parts_of(candidate);
  for (std::size_t part = 0; part < own.size(); ++part) {
    compare(own[part].first, own[part].second, others[part].second);
  }
  return differences;
}

void SimilarPoints::add(const PointRecord& point) {
  points_[{point.policy, point.identity.model}].push_back(&point);
}

const PointRecord* SimilarPoints::nearest(const PointRecord& point) const {
  const auto found = points_.find({point.policy, point.identity.model});
  if (found == points_.end()) return nullptr;
  const PointRecord* nearest = nullptr;
  std::size_t fewest = 0;
  for (std::size_t index = 0; index < std::min(kMaxExamined, found->second.size()); ++index) {
    const PointRecord& other = *found->second[index];
    const std::size_t differences = identity_differences(point.identity, other.identity).size();
    if (nearest != nullptr && differences >= fewest) continue;
    nearest = &other;
    fewest = differences;
  }
  return nearest;
}

namespace {

class Names {
 public:
  template <class Fact>
  void add_unless_equal(const char* name, const Fact& base, const Fact& candidate) {
    if (!(base == candidate)) names.emplace_back(name);
  }

  std::vector<std::string> names;
};

bool differs(const ComparedRow& row, std::initializer_list<Metric> metrics) {
  return std::any_of(row.metrics.begin(), row.metrics.end(), [&](const MetricRecord& record) {
    const bool is_asked = std::find(metrics.begin(), metrics.end(), record.metric) != metrics.end();
    return is_asked && record.verdict != CompareVerdict::kSame &&
           record.verdict != CompareVerdict::kNotMeasured;
  });
}

// Compares counts per step if the two runs counted different numbers of steps.
void add_predicted_counts(Names& found, const PointRecord& base, const PointRecord& candidate) {
  const auto& own = base.predicted_counts;
  const auto& other = candidate.predicted_counts;
  const bool are_counted = own && other && base.counts && candidate.counts;
  const bool is_same = are_counted ? !first_difference(*own, base.counts->counted_steps, *other,
                                                       candidate.counts->counted_steps)
                                   : own == other;
  if (!is_same) found.names.emplace_back("predicted_counts");
}

void add_kernels(Names& found, const KernelRecord& base, const KernelRecord& candidate) {
  found.add_unless_equal("kernels.launches", base.launches, candidate.launches);
  found.add_unless_equal("kernels.note", base.note, candidate.note);
}

// Lists the names of the members that differ, or only `name` if one side has no record.
template <HasFields Part>
void add_part(Names& found, const std::string& name, const std::optional<Part>& base,
              const std::optional<Part>& candidate) {
  if (base == candidate) return;
  if (!base || !candidate) {
    found.names.push_back(name);
    return;
  }
  Json own = fields_to_json(*base, kNotRepeated);
  Json other = fields_to_json(*candidate, kNotRepeated);
  visit_fields(*base, [&](const Field& field, const auto&) {
    if (own[field.key] != other[field.key]) found.names.push_back(name + "." + field.key);
  });
}

}  // namespace

std::vector<std::string> other_differences(const PointRecord& base, const PointRecord& candidate,
                                           const ComparedRow& row) {
  Names found;
  found.add_unless_equal("device", base.device, candidate.device);
  found.add_unless_equal("reason", base.reason, candidate.reason);
  const bool other_ops = differs(row, {Metric::kExecutedOps, Metric::kRecomputedOps});
  if (base.counts && candidate.counts) {
    found.add_unless_equal("counted_steps", base.counts->counted_steps,
                           candidate.counts->counted_steps);
  }
  if (!other_ops) add_predicted_counts(found, base, candidate);
  if (!differs(row, {Metric::kPeakAllocated, Metric::kPeakReserved})) {
    add_part(found, "memory", base.memory, candidate.memory);
    if (base.ranks && candidate.ranks) {
      found.add_unless_equal("ranks.ranks", base.ranks->ranks, candidate.ranks->ranks);
    }
  }
  if (base.kernels && candidate.kernels) add_kernels(found, *base.kernels, *candidate.kernels);
  if (base.time && candidate.time) {
    found.add_unless_equal("time.attention_backend", base.time->attention_backend,
                           candidate.time->attention_backend);
    found.add_unless_equal("time.peak_requested_bytes", base.time->peak_requested,
                           candidate.time->peak_requested);
    found.add_unless_equal("time.peak_allocated_bytes", base.time->peak_allocated,
                           candidate.time->peak_allocated);
  }
  add_part(found, "parity", base.parity, candidate.parity);
  add_part(found, "effect", base.effect, candidate.effect);
  if (!other_ops && !differs(row, {Metric::kRecomputedFlops})) {
    found.add_unless_equal("executed_step_flops", base.step_flops, candidate.step_flops);
  }
  return std::move(found.names);
}

}  // namespace rematch
