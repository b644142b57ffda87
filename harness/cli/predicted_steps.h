// The output of rematch predict, wherever its steps were predicted.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/files/input_files.h"
#include "harness/cli/flags/shared_flags.h"
#include "policies/predict/device/reserve.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"
#include "reports/render/tables/prediction_table.h"

namespace rematch {

// The memory of the card that steps are predicted for.
struct CardMemory {
  std::string device;
  Bytes memory;
  MemoryReserve reserve;
  Bytes for_tensors() const { return std::max(memory - reserve.total(), Bytes{}); }
};

// Of the data sheet of --device, or else of the profile's card; nothing if there is none. Throws
// UsageError for --reserve without a card.
std::optional<CardMemory> card_memory(const PredictFlags& flags, const Trace& trace,
                                      const std::optional<Profile>& profile, int world);

// A table and what fits the card, or with `as_json` a list. `profile`: where times are from;
// nothing: there are none.
void print_predictions(const std::vector<PredictedStep>& steps, const Trace& trace,
                       const std::optional<Profile>& profile, const FrontSetting& setting,
                       const std::optional<CardMemory>& card, bool as_json);

}  // namespace rematch
