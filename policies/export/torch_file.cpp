#include "policies/export/torch_file.h"

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "policies/export/embedded.h"
#include "policies/predict/step/counts.h"
#include "policies/predict/step/step.h"
#include "policies/trace/same_op.h"

namespace rematch {
namespace {

constexpr std::size_t kLineLength = 118;

std::string in_python_quotes(std::string_view text) {
  std::string quoted = "\"";
  for (const char character : text) {
    if (character == '"' || character == '\\') quoted += '\\';
    quoted += character == '\n' ? ' ' : character;
  }
  return quoted + "\"";
}

// "[a, b, c]" over as many lines as it takes, the later ones indented.
std::string list_of(const std::vector<std::string>& items, std::size_t indent) {
  std::string text = "[";
  std::size_t column = indent;
  for (std::size_t index = 0; index < items.size(); ++index) {
    const std::string item = items[index] + (index + 1 < items.size() ? "," : "");
    if (index != 0 && column + item.size() + 1 > kLineLength) {
      text.append("\n").append(indent, ' ');
      column = indent;
    } else if (index != 0) {
      text += ' ';
      ++column;
    }
    text += item;
    column += item.size();
  }
  return text + "]";
}

std::string kinds_text(const TorchRegions& regions) {
  constexpr std::size_t kIndent = 13;  // behind `     "ops": [`
  std::string text;
  for (const TorchRegionKind& kind : regions.kinds) {
    std::vector<std::string> ops;
    std::vector<std::string> saved;
    for (const std::string& op : kind.ops) ops.push_back(in_python_quotes(op));
    for (const std::size_t op : kind.saved) saved.push_back(std::to_string(op));
    const auto truth = [](bool value) { return std::string(value ? "True" : "False"); };
    text.append("    {\"early_stop\": ").append(truth(kind.early_stop));
    text.append(", \"preserve_rng_state\": ").append(truth(kind.draws_random));
    text.append(",\n     \"save\": ").append(list_of(saved, kIndent + 1));
    text.append(",\n     \"ops\": ").append(list_of(ops, kIndent)).append("},\n");
  }
  return text;
}

std::string modules_text(const TorchRegions& regions) {
  std::string text;
  for (const TorchRegion& region : regions.regions) {
    text.append("    ").append(in_python_quotes(region.module)).append(": ");
    text.append(std::to_string(region.kind)).append(",\n");
  }
  return text;
}

// torch runs regions as a whole, so that is predicted, whatever schedule the plan allows.
std::string predicted_text(const Trace& trace, const Plan& plan) {
  constexpr Schedule kAsTorch = Schedule::kWholeRegion;
  StepSimulator simulator(trace, OptimizerModel::kNothing);
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

void fill(std::string& text, std::string_view hole, const std::string& value) {
  for (std::size_t at = text.find(hole); at != std::string::npos;
       at = text.find(hole, at + value.size())) {
    text.replace(at, hole.size(), value);
  }
}

// Text that stands in the file's docstring.
std::string in_docstring(std::string text) {
  for (char& character : text) {
    if (character == '"' || character == '\\' || character == '\n') character = '\'';
  }
  return text;
}

}  // namespace

std::string torch_file(const Trace& trace, const Plan& plan, const TorchRegions& regions,
                       const CallPlace& place, const std::string& module_name) {
  std::string text(embedded_exports().front().second);
  fill(text, "@TITLE@",
       in_docstring("The plan '" + plan.policy + "' for " + plan.model + ", " + plan.dtype +
                    ", with torch.utils.checkpoint."));
  fill(text, "@TARGET@", std::string(place.target));
  fill(text, "@CALL@", call_text(place, module_name));
  fill(text, "@KINDS@", kinds_text(regions));
  fill(text, "@MODULES@", modules_text(regions));
  fill(text, "@PREDICTED@", predicted_text(trace, plan));
  return text;
}

}  // namespace rematch
