// Measures variants against each other, with one child process per point and pass. Exact passes run
// once. Time passes alternate between the points over several rounds. Parity, ratios and the effect
// check then cover all points.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/process/interrupt.h"
#include "harness/run/children/child_point.h"
#include "harness/run/prediction/memory_fit.h"
#include "harness/run/timing/turns.h"
#include "harness/run/variants.h"
#include "reports/record/report.h"

namespace rematch {

struct ComparisonSettings {
  VariantSettings variants;
  std::string reference = "none";  // policy to which all other points are compared
  int num_repeats = 0;  // repeats of the reference's steps, to measure the noise of its loss
  int num_steps = 10;   // number of steps per pass and per round
  std::optional<int> num_timed_steps;  // number of timed steps per round; if absent, num_steps
  RoundRule rounds;         // rounds of time passes; no times are measured if `most` is 0
  bool times_only = false;  // skips the exact passes, so there are no op counts and no parity check
  // Times all points alternately in one process. The reference runs again in a fresh process, as
  // the control. Points must not be on several ranks.
  bool in_process = false;
  ChildRule children;
  // Points with a larger predicted peak are skipped, because the system may kill an unrelated
  // process when memory runs out.
  std::optional<AvailableMemory> limit;
  std::string how_to_lift_limit;  // text appended to the reason of a skip, such as "--force
                                  // measures it anyway"
  // Folder of finished points, from which a killed run can resume. If empty, no points are kept.
  std::string points_folder;
  bool fresh = false;
  // File for an allocator snapshot of the last variant, which is then measured again. If empty, no
  // snapshot is taken.
  std::string snapshot_file;
};

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
Report run_comparison(const ComparisonSettings& settings, const std::vector<Variant>& variants,
                      const Provenance& provenance);

// Returns one line about the results that an interrupted comparison has kept. Pure.
std::string what_is_kept(const ComparisonSettings& settings, bool keeps_any);

}  // namespace rematch
