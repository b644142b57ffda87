#include "harness/cli/libtorch/parts.h"

#include "harness/cli/exit_code.h"
#include "harness/cli/flags/model_flags.h"
#include "harness/cli/libtorch/run_setup.h"
#include "harness/measure/cuda_device.h"
#include "harness/measure/memory.h"
#include "harness/run/children/child_point.h"
#include "harness/run/prediction/memory_fit.h"
#include "harness/run/prediction/prediction.h"
#include "models/preset/parallel.h"

namespace rematch {

bool has_libtorch() { return true; }

bool run_as_child(const std::vector<std::string>& command) {
  if (command.size() != 4 || command[1] != "point") return false;
  answer_request(command[2], command[3]);
  return true;
}

std::optional<AvailableMemory> memory_limit(const std::string& device) {
  return available_memory_of(device);
}

std::vector<std::string> cards_here() {
  std::vector<std::string> cards;
  while (const auto card = cuda_device(static_cast<int>(cards.size()))) cards.push_back(card->name);
  return cards;
}

Trace record_trace(const ModelSpec& spec) {
  if (num_stages(spec.dimensions) > 1) {
    throw UsageError("this needs one trace, but each stage of pp=" +
                     std::to_string(num_stages(spec.dimensions)) +
                     " has its own; run, predict and search work on stages");
  }
  install_counting_allocators();
  return MetaModel(spec, OptimizerKind::kNothing, "", 0).trace();
}

}  // namespace rematch
