// Measures a comparison by a child process, `rematch run`, in the folder of its generation, while
// it beats for its claim; then says how that ended.
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
  std::string folder;   // of the sweep
  std::string program;  // started as `program run ...`
  std::chrono::milliseconds beat_every{};
  std::optional<std::chrono::nanoseconds> end;  // of the monotonic clock
  std::optional<AvailableMemory> memory;        // absent: nothing is skipped
  bool one_at_a_time = false;                   // on this machine: times on its CPU
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
  // How one child ended: its status of wait(), or why it was stopped.
  std::variant<int, MeasureEnd> run_child(const PlannedComparison& comparison,
                                          HeldClaim& claim) const;
  MeasureEnd measure_again_and_again(const PlannedComparison& comparison, HeldClaim& claim) const;
  MeasureEnd finish(HeldClaim& claim, int exit_code) const;
  // Until it works: the disk may be full for a while. Throws its FileError when told to stop.
  void insist(HeldClaim& claim, const std::function<void()>& write) const;
  bool is_told() const;

  const ComparisonPlan& plan_;
  ChildSettings settings_;
};

}  // namespace rematch
