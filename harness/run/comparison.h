// Measures variants against each other: one child process per point and pass, exact passes once,
// time passes by turns over rounds, then parity, ratios and the effect check over all of them.
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
  std::string reference = "none";      // policy that the others are held against
  int num_repeats = 0;                 // of the reference's steps, for the noise of its loss
  int num_steps = 10;                  // in each pass and round
  std::optional<int> num_timed_steps;  // in each round; absent: num_steps
  RoundRule rounds;                    // of time; none at most: no times
  bool times_only = false;             // leaves out the exact passes: no counts, no bits
  // Times all points by turns in one process. The reference runs once more in a fresh process, as
  // the control. Points must not be on several ranks.
  bool in_process = false;
  ChildRule children;
  // Points whose predicted peak is above it are skipped: where memory runs out the system ends some
  // process, and not always the one that asked for it.
  std::optional<AvailableMemory> limit;
  std::string how_to_lift_limit;  // said of such a point: "--force measures it all the same"
  std::string points_folder;      // for going on after a kill; empty: none
  bool fresh = false;
  std::string snapshot_file;  // of the last variant, which is then measured anew; empty: none
};

// A signal ended it: what had finished, as a report. Points whose exact pass had not ended are not
// in it, and the others have the rounds that were whole.
struct InterruptedComparison : Interrupted {
  InterruptedComparison(int signal_number, std::string remains, Report report)
      : Interrupted(signal_number, std::move(remains)), partial(std::move(report)) {}
  Report partial;
};

// Points in the order of the variants. Throws InterruptedComparison after a signal, with its
// children gone, what had finished on disk if there is a folder for it, and a line that says which;
// never for what happens to a point.
Report run_comparison(const ComparisonSettings& settings, const std::vector<Variant>& variants,
                      const Provenance& provenance);

// One line on what an interrupted comparison has kept. Pure.
std::string what_is_kept(const ComparisonSettings& settings, bool keeps_any);

}  // namespace rematch
