// Measures variants against each other, with one child process per point and pass. Exact passes run
// once. Time passes alternate between the points over several rounds. Parity, ratios and the effect
// check then cover all points.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/run/children/child_point.h"
#include "harness/run/prediction/memory_fit.h"
#include "harness/run/timing/turns.h"
#include "harness/run/variants.h"
#include "harness/sweep/interrupt.h"
#include "reports/record/report.h"

namespace rematch {

struct ComparisonSettings {
  VariantSettings variants;
  std::string reference = "none";  // policy that the other points are compared with
  int num_repeats = 0;  // repeats of the reference's steps, to measure the noise of its loss
  int num_steps = 10;   // per pass and per round
  std::optional<int> num_timed_steps;  // per round; absent: num_steps
  RoundRule rounds;                    // rounds of time passes; `most` is 0: no times
  bool times_only = false;             // skips the exact passes, so there are no counts and no bits
  // Times all points alternately in one process. The reference runs once more in a fresh process,
  // as the control. Points must not be on several ranks.
  bool in_process = false;
  ChildRule children;
  // Points with a larger predicted peak are skipped. When memory runs out the system kills some
  // process, and not always the one that asked for memory.
  std::optional<AvailableMemory> limit;
  std::string how_to_lift_limit;  // appended to a skip's reason: "--force measures it all the same"
  // Keeps finished points, so that a killed run can resume. Empty: keeps none.
  std::string points_folder;
  bool fresh = false;
  // Allocator snapshot of the last variant, which is then measured again. Empty: none.
  std::string snapshot_file;
};

// A signal interrupted the comparison. `partial` reports what had finished. It omits points whose
// exact pass had not ended. The other points have the rounds that were complete.
struct InterruptedComparison : Interrupted {
  InterruptedComparison(int signal_number, std::string remains, Report report)
      : Interrupted(signal_number, std::move(remains)), partial(std::move(report)) {}
  Report partial;
};

// Returns points in the order of the variants. Failures of a point never throw. Throws
// InterruptedComparison after a signal, once all children have ended. If there is a points folder,
// finished work is on disk, and the exception's line says so.
Report run_comparison(const ComparisonSettings& settings, const std::vector<Variant>& variants,
                      const Provenance& provenance);

// One line about what an interrupted comparison has kept. Pure.
std::string what_is_kept(const ComparisonSettings& settings, bool keeps_any);

}  // namespace rematch
