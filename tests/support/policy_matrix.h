// The matrix of policies: every policy of the catalogue on a reduced model of each family, under
// both schedules. A row is one line: the recomputed ops by class, the peak and the bytes after
// forward, or the error message. Predicted rows come from a step on meta tensors. Measured rows
// come from a step on the CPU, and must be equal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "harness/run/prediction/prediction.h"
#include "policies/base/rejected.h"
#include "policies/catalogue/plan_facts.h"
#include "policies/catalogue/resolve.h"
#include "policies/plan/plan.h"
#include "tests/support/meta_engine.h"

namespace rematch::testing {

struct MatrixModel {
  std::string preset;
  std::map<std::string, std::int64_t> dimensions;
  std::string dtype = "float32";
};

// Returns models of four layers, in which blocks hold more bytes than the head and the loss. The
// list has every model with eager ops, and then every model with fused ops.
std::vector<MatrixModel> matrix_models();

// Returns the text of a policy for every entry of the catalogue. An entry with arguments appears
// once for each kind of argument. Throws if an entry needs arguments that policy_matrix.cpp does
// not define.
std::vector<std::string> matrix_policies();

// The results of one step, as hashes.
struct StepBits {
  std::string loss;
  std::map<std::string, std::string> gradients;
  bool operator==(const StepBits&) const = default;
};

// Runs one model on meta tensors. If asked to, also runs it with data, on the CPU or a device.
// Installs the counting allocators.
class PolicyMatrix {
 public:
  explicit PolicyMatrix(const MatrixModel& model, at::Device device = at::kCPU);
  ~PolicyMatrix();

  // Returns the lines above the rows: the model, and the ops that every policy executes equally
  // often.
  std::string head();

  // Returns null if the policy is rejected.
  const Plan* plan_of(const std::string& policy) const;
  // Returns the plan's facts. The policy must not be rejected.
  PlanFacts facts(const std::string& policy) const;
  // Returns the error message, or "" if the policy resolves.
  std::string refusal(const std::string& policy) const;
  // Returns the schedules to run. A rejected policy has none. A plan without regions has only one,
  // because it runs the same under every schedule.
  std::vector<Schedule> schedules(const std::string& policy) const;

  EngineFigures predicted(const std::string& policy, Schedule schedule);
  EngineFigures measured(const std::string& policy, Schedule schedule);
  StepBits bits(const std::string& policy, Schedule schedule);

  // Formats one row, without a line feed.
  std::string row(const std::string& policy, Schedule schedule, const EngineFigures& figures);
  std::string refused_row(const std::string& policy) const;
  // Returns the rows of a policy predicted on meta tensors, or its error message.
  std::vector<std::string> predicted_rows(const std::string& policy);

 private:
  struct WithData;
  const EngineFigures& none();
  WithData& with_data();

  MatrixModel model_;
  at::Device device_;
  MetaModel meta_;
  Trace trace_;
  Resolver resolver_;
  std::unique_ptr<EngineFigures> none_;
  std::unique_ptr<WithData> with_data_;
  mutable std::map<std::string, std::variant<Plan, Rejected>> resolved_;
};

}  // namespace rematch::testing
