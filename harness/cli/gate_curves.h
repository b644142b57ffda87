// rematch gate --losses: loss curves of any trainer in the place of a report.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <variant>
#include <vector>

#include "reports/gate/gate_curves.h"

namespace rematch {

struct CurveFlags {
  explicit CurveFlags(CLI::App& app);  // of the command that they belong to
  bool are_given() const { return !losses.empty(); }

  std::vector<std::string> losses;
  std::vector<std::string> references;
  LossColumns columns;
  const CLI::App* command;
};

// Throws UsageError for flags of the command that need a report, for files without the other side,
// and for a file that appears twice.
void require_curve_flags(const CurveFlags& flags, const GateSettings& settings);

// Throws UsageError unless the window is within the steps that `who_has`: "the runs have".
void require_window(const GateSettings& settings, const std::string& who_has,
                    std::size_t num_steps);

// Throws UsageError and FormatError.
std::variant<GateRecord, NoCommonSteps> gate_curve_files(const CurveFlags& flags,
                                                         const GateSettings& settings);

}  // namespace rematch
