// Measures a comparison in a child process, `rematch run`. Each claim has its own folder for the
// child's files. While the child runs, writes heartbeats to the claim. At the end, writes the
// comparison's result to the claim.
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
  std::string folder;   // folder of the sweep
  std::string program;  // program to start as `program run ...`
  std::chrono::milliseconds beat_every{};
  std::optional<std::chrono::nanoseconds> end;  // time limit, on the monotonic clock
  std::optional<AvailableMemory> memory;        // if absent, no comparison is skipped
  // Whether this machine may measure only one comparison at a time, so that CPU times are
  // undisturbed.
  bool one_at_a_time = false;
  std::function<void(const std::string& line)> say;
};

class ChildMeasurer : public Measurer {
 public:
  // The plan must outlive this object.
  ChildMeasurer(const ComparisonPlan& plan, ChildSettings settings)
      : plan_(plan), settings_(std::move(settings)) {}

  std::shared_ptr<void> turn() override;
  MeasureEnd measure(std::size_t item, HeldClaim& claim) override;

 private:
  std::string work_folder(const HeldClaim& claim) const;
  void prepare_folder(const HeldClaim& claim) const;
  // Runs one child. Returns the status that wait() gave, or why the child was stopped.
  std::variant<int, MeasureEnd> run_child(const PlannedComparison& comparison,
                                          HeldClaim& claim) const;
  MeasureEnd measure_again_and_again(const PlannedComparison& comparison, HeldClaim& claim) const;
  MeasureEnd finish(HeldClaim& claim, int exit_code) const;
  // Retries until `write` succeeds, because the disk may be full for some time. If the worker is
  // told to stop, rethrows the FileError of `write`.
  void insist(HeldClaim& claim, const std::function<void()>& write) const;
  bool is_told() const;

  const ComparisonPlan& plan_;
  ChildSettings settings_;
};

}  // namespace rematch
