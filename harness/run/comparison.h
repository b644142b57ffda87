// Measures variants against each other, with one child process per point and pass. Exact passes run
// once. Time passes alternate between the points over several rounds. Parity, ratios and the effect
// check then cover all points.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/process/interrupt.h"
#include "harness/run/run_settings.h"
#include "harness/run/variants.h"
#include "reports/record/report.h"

namespace rematch {

// Thrown when a signal interrupts the comparison. `partial` reports the work that was complete:
// points whose exact pass had ended, each with its complete rounds.
struct InterruptedComparison : Interrupted {
  InterruptedComparison(int signal_number, std::string remains, Report report)
      : Interrupted(signal_number, std::move(remains)), partial(std::move(report)) {}
  Report partial;
};

// Returns points in the order of the variants. A point that fails does not throw; its status says
// why. Throws InterruptedComparison after a signal, once all children have ended. If the settings
// name a points folder, finished work is on disk, and the exception's message says so.
Report run_comparison(const RunSettings& settings, const std::vector<Variant>& variants,
                      const Provenance& provenance);

// Returns one line about the results that an interrupted comparison has kept. Pure.
std::string what_is_kept(const RunSettings& settings, bool keeps_any);

}  // namespace rematch
