// The matrix of policies: every policy of the catalogue on a reduced model of each family, under
// both schedules. A row is one line: recomputed ops by class, peak and after-forward bytes, or the
// words of the refusal. The same rows come from meta, where they are predicted, and from the CPU,
// where they are measured.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "harness/run/prediction/prediction.h"
#include "policies/catalogue/plan_facts.h"
#include "policies/catalogue/resolve.h"
#include "policies/plan/plan.h"

namespace rematch::testing {

struct MatrixModel {
  std::string preset;
  std::map<std::string, std::int64_t> dimensions;
  std::string dtype = "float32";
};

// Four layers each, with blocks that hold more than head and loss do; first all with eager ops,
// then all with fused ones.
std::vector<MatrixModel> matrix_models();

// Every entry of the catalogue, those with arguments with each kind of argument. Throws if one that
// takes words has none here.
std::vector<std::string> matrix_policies();

// What a step left behind, as hashes.
struct StepBits {
  std::string loss;
  std::map<std::string, std::string> gradients;
  bool operator==(const StepBits&) const = default;
};

// One model on meta and, if asked for, with data, on the CPU or a device. Installs the counting
// allocators.
class PolicyMatrix {
 public:
  explicit PolicyMatrix(const MatrixModel& model, at::Device device = at::kCPU);
  ~PolicyMatrix();

  // The lines above the rows: the model, and what every policy executes alike.
  std::string head();

  // Null if the policy is refused.
  const Plan* plan_of(const std::string& policy) const;
  // The plan's facts for a policy that is not refused.
  PlanFacts facts(const std::string& policy) const;
  // "" if the policy resolves, else the words of the refusal.
  std::string refusal(const std::string& policy) const;
  // None for a refused policy; a plan without regions has no schedule and comes once.
  std::vector<Schedule> schedules(const std::string& policy) const;

  Prediction predicted(const std::string& policy, Schedule schedule);
  Prediction measured(const std::string& policy, Schedule schedule);
  StepBits bits(const std::string& policy, Schedule schedule);

  // The row's line, without a line feed.
  std::string row(const std::string& policy, Schedule schedule, const Prediction& figures);
  std::string refused_row(const std::string& policy) const;
  // The rows of a policy predicted on meta tensors, or its refusal.
  std::vector<std::string> predicted_rows(const std::string& policy);

 private:
  struct WithData;
  const Prediction& none();
  WithData& with_data();

  MatrixModel model_;
  at::Device device_;
  MetaModel meta_;
  Trace trace_;
  Resolver resolver_;
  std::unique_ptr<Prediction> none_;
  std::unique_ptr<WithData> with_data_;
  mutable std::map<std::string, std::variant<Plan, Rejected>> resolved_;
};

}  // namespace rematch::testing
