// Measures variants against each other, with one child process per point and pass. Exact passes run
// once. Time passes alternate between the points over several rounds. At the end, computes parity,
// ratios and effects.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/process/interrupt.h"
#include "harness/run/run_settings.h"
#include "harness/run/variants.h"
#include "reports/record/report.h"

namespace rematch {

// Thrown when a signal interrupts the comparison. `partial` contains the points whose exact pass
// had ended, each with its complete rounds.
struct InterruptedComparison : Interrupted {
  InterruptedComparison(int signal_number, std::string remains, Report report)
      : Interrupted(signal_number, std::move(remains)), partial(std::move(report)) {}
  Report partial;
};

// Returns points in the order of the variants. If a point fails, returns the point with the reason
// in its status. Throws InterruptedComparison after a signal, once all children have ended. The
// message says where finished work is stored, if the settings name a points folder.
Report run_comparison(const RunSettings& settings, const std::vector<Variant>& variants,
                      const Provenance& provenance);

// Returns one line that says which results an interrupted comparison has stored. Pure.
std::string what_is_kept(const RunSettings& settings, bool keeps_any);

}  // namespace rematch
