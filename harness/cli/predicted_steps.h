// Prints the output of rematch predict, for predictions from a model or from a stored trace.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/exit_code.h"
#include "harness/cli/files/input_files.h"
#include "harness/cli/flags/shared_flags.h"
#include "models/preset/preset.h"
#include "policies/catalogue/catalogue.h"
#include "policies/predict/device/device_sheet.h"
#include "policies/predict/device/reserve.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"
#include "reports/render/tables/prediction_table.h"

namespace rematch {

// The memory of the card on which steps are predicted.
struct CardMemory {
  std::string device;
  Bytes memory;
  MemoryReserve reserve;
  Bytes for_tensors() const { return std::max(memory - reserve.total(), Bytes{}); }
};

// Returns the memory in the data sheet of --device. Without --device, uses the data sheet of the
// profile's card. Absent if there is no such sheet. Throws UsageError for --reserve without a card.
std::optional<CardMemory> card_memory(const PredictFlags& flags, const Trace& trace,
                                      const std::optional<Profile>& profile, int world);

// Adds a row for each refused policy.
std::vector<PredictedStep> with_refused(std::vector<PredictedStep> steps,
                                        const std::vector<RefusedPolicy>& refused);

// Prints the predictions as a table, with a line about what fits the card, or as a JSON list.
// Prints no times without a profile. Returns kSomePointsFailed if a policy was refused.
ExitCode print_predictions(std::vector<PredictedStep> steps, const Trace& trace,
                           const std::optional<Profile>& profile, const FrontSetting& setting,
                           const std::optional<CardMemory>& card, bool as_json);

// Returns a profile for each stage of a pipeline. `file` holds a profile of the model without
// stages. Throws UsageError if the profile belongs to another model, or to other ops.
std::vector<Profile> profiles_of_stages(const std::string& file, const ModelSpec& spec,
                                        const std::vector<const Trace*>& stages);

// Returns the time in which an activation passes from a stage to `stage`. 0 if no link is known,
// because `sheet` is null.
Profile::Duration passing_between(const Trace& stage, const DeviceSheet* sheet);

}  // namespace rematch
