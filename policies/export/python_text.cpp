#include "policies/export/python_text.h"

#include <map>

#include "policies/base/text.h"
#include "policies/export/embedded.h"
#include "policies/predict/step/counts.h"
#include "policies/predict/step/step.h"
#include "policies/trace/trace_op.h"

namespace rematch {

std::string in_python_quotes(std::string_view text) {
  std::string quoted = "\"";
  for (const char character : text) {
    if (character == '"' || character == '\\') quoted += '\\';
    quoted += character == '\n' ? ' ' : character;
  }
  return quoted + "\"";
}

std::string in_docstring(std::string text) {
  for (char& character : text) {
    if (character == '"' || character == '\\' || character == '\n') character = '\'';
  }
  return text;
}

std::string template_of(std::string_view name) {
  const std::map<std::string_view, std::string_view> texts(embedded_exports().begin(),
                                                           embedded_exports().end());
  return filled_in(texts.at(name), "@APPLY@\n", texts.at("apply_modules"));
}

std::string predicted_text(const Trace& trace, const Plan& plan) {
  constexpr Schedule kAsTorch = Schedule::kWholeRegion;
  StepSimulator simulator(trace, OptimizerKind::kNothing);
  const StepPrediction with = simulator.simulate(plan, kAsTorch);
  const StepPrediction without = simulator.simulate(Plan{}, kAsTorch);
  const auto above = [](const StepPrediction& step) {
    return std::to_string(step.peak_bytes().count - step.before.count);
  };
  std::string text = "    \"peak_bytes\": " + above(with) + ",\n";
  text += "    \"peak_bytes_without\": " + above(without) + ",\n    \"recomputed_ops\": {\n";
  const auto counts = with_one_name(predict_counts(trace, plan, kAsTorch).ops(Phase::kRecompute));
  for (const auto& [op, count] : counts) {
    text.append("        ").append(in_python_quotes(op)).append(": ");
    text.append(std::to_string(count)).append(",\n");
  }
  return text + "    },\n";
}

}  // namespace rematch
