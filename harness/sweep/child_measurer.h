// Measures a comparison in a child process, `rematch run`, in the folder of its generation. Sends
// heartbeats to the claim meanwhile, then writes to the claim how it ended.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "harness/measure/machine_memory.h"
#include "harness/sweep/comparison_plan.h"
#include "harness/sweep/work_loop.h"

namespace rematch {

struct ChildSettings {
  std::string folder;   // the sweep's folder
  std::string program;  // started as `program run ...`
  std::chrono::milliseconds beat_every{};
  std::optional<std::chrono::nanoseconds> end;  // on the monotonic clock
  std::optional<AvailableMemory> memory;        // absent: nothing is skipped
  // One comparison at a time on this machine, to time its CPU undisturbed.
  bool one_at_a_time = false;
  std::function<void(const std::string& line)> say;
};

class ChildMeasurer : public Measurer {
 public:
  // The plan must outlive it.
  ChildMeasurer(const ComparisonPlan& plan, ChildSettings settings)
      : plan_(plan), settings_(std::move(settings)) {}

  std::shared_ptr<void> turn() override;
  MeasureEnd measure(std::size_t item, HeldClaim& claim) override;

 private:
  std::string work_folder(const HeldClaim& claim) const;
  void prepare_folder(const HeldClaim& claim) const;
  // Runs one child. Returns its status from wait(), or why it was stopped.
  std::variant<int, MeasureEnd> run_child(const PlannedComparison& comparison,
                                          HeldClaim& claim) const;
  MeasureEnd measure_again_and_again(const PlannedComparison& comparison, HeldClaim& claim) const;
  MeasureEnd finish(HeldClaim& claim, int exit_code) const;
  // Retries until `write` succeeds, because the disk may be full for a while. Rethrows its
  // FileError when told to stop.
  void insist(HeldClaim& claim, const std::function<void()>& write) const;
  bool is_told() const;

  const ComparisonPlan& plan_;
  ChildSettings settings_;
};

}  // namespace rematch
