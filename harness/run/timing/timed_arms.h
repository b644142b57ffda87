// Times every point of a comparison that has status ok, and the reference once more as the A/A
// control. Arms alternate in rounds, and finished rounds on disk are reused. With in_process, all
// points share one process, and the control has a separate process.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "harness/progress/progress.h"
#include "harness/run/children/point_store.h"
#include "harness/run/comparison.h"
#include "harness/run/timing/turns.h"
#include "harness/run/variants.h"
#include "reports/record/point.h"
#include "reports/statistics/statistics.h"

namespace rematch {

class TimedArms {
 public:
  // All arguments must outlive this object.
  TimedArms(const RunSettings& settings, const std::vector<Variant>& variants,
            const PointStore& store, Progress& progress);

  // `points` must be in the order of the variants. If a round of a point fails, the point gets the
  // status of that round. Throws Interrupted after a signal.
  void measure(std::vector<PointRecord>& points, std::optional<std::size_t> reference);

  // Fills the time of variant `index` and its ratio to the reference, if its rounds ended ok. For
  // the reference, fills the control's ratio. Keeps the op class times of an earlier pass.
  void add_time(std::size_t index, PointRecord& point) const;

 private:
  std::optional<int> attempt_on_disk(int round) const;
  std::optional<PointRecord> load_round(const Arm& arm, int round) const;
  PointRecord measure_arm(const Arm& arm, const Turn& turn, std::vector<PointRecord>& points);
  void measure_in_one_process(std::vector<PointRecord>& points);
  std::optional<std::vector<PointRecord>> turns_on_disk() const;
  std::vector<PointRecord> measure_turns();
  void add_fresh_control();
  int num_steps() const;
  std::optional<Estimate> control() const;
  void add_ratio(PointRecord& point, const Arm& own, const Arm& reference) const;
  const Arm* arm_of(std::size_t point, bool control) const;
  std::string round_name(const Arm& arm, int round) const;
  std::string arm_name(const Arm& arm, const std::string& part) const;
  std::string arms_hash() const;

  const RunSettings& settings_;
  const RunRequest& request_;
  const std::vector<Variant>& variants_;
  const PointStore& store_;
  Progress& progress_;
  std::string start_;  // random name of this invocation of the command
  std::optional<std::size_t> reference_;
  std::vector<Arm> arms_;  // with in_process, an arm has a single entry that covers all its rounds
};

}  // namespace rematch
