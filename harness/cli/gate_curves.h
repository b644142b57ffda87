// Implements rematch gate --losses, which compares loss curves of any trainer instead of a report.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <variant>
#include <vector>

#include "reports/gate/gate_curves.h"

namespace rematch {

struct CurveFlags {
  explicit CurveFlags(CLI::App& app);  // registers the flags with the command `app`
  bool are_given() const { return !losses.empty(); }

  std::vector<std::string> losses;
  std::vector<std::string> references;
  LossColumns columns;
  const CLI::App* command;
};

// Throws UsageError if flags for loss curves and flags for reports are mixed, if there are no
// reference losses, or if a file appears twice.
void require_curve_flags(const CurveFlags& flags, const GateSettings& settings);

// Throws UsageError unless the window is within the available steps. `who_has` begins the message,
// such as "the runs have".
void require_window(const GateSettings& settings, const std::string& who_has,
                    std::size_t num_steps);

// Compares the curves in the files. Throws UsageError and FormatError.
std::variant<GateRecord, NoCommonSteps> gate_curve_files(const CurveFlags& flags,
                                                         const GateSettings& settings);

}  // namespace rematch
