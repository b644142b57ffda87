#include "tests/reports/gate/sample_arms.h"

#include "tests/reports/sample_report.h"

namespace rematch::testing {

Steps steps_of(const std::vector<float>& losses) {
  Steps steps;
  for (const float loss : losses) {
    StepRecord step;
    set_loss(step, loss);
    step.gradient_norm_bits = "0x3ff0000000000000";
    step.parameter_hash = "aa";
    step.generator_hash = "bb";
    steps.push_back(step);
  }
  return steps;
}

LossArm arm_of(const std::vector<std::vector<float>>& runs) {
  LossArm arm;
  arm.policy = "none";
  for (const std::vector<float>& losses : runs) arm.runs.push_back(steps_of(losses));
  return arm;
}

PointRecord trained_point(const std::string& policy, const std::vector<float>& losses) {
  PointRecord point = sample_point(policy);
  point.steps = steps_of(losses);
  return point;
}

Report report_of(const std::vector<PointRecord>& points) {
  return Report{sample_provenance(), points, {}, {}};
}

GateRecord gate(const Report& report, const Report& reference, const GateSettings& settings) {
  return gate_report(report, "report.json", &reference, "reference.json", settings);
}

}  // namespace rematch::testing
