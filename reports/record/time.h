// The step time of a point, and how reliable it is.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/base/json_fwd.h"
#include "policies/base/record_fields.h"
#include "policies/trace/op_class.h"
#include "policies/trace/phase.h"

namespace rematch {

// The step time of this point divided by the reference's step time, paired by round. `verdict` is
// faster, slower, same or unsure.
struct StepRatioRecord {
  std::string reference;  // the reference's policy, such as "none"
  double ratio = 1;
  std::optional<std::array<double, 2>> interval;  // 95 % interval; absent if only one round ran
  std::string verdict;
  bool operator==(const StepRatioRecord&) const = default;
};

template <RecordOf<StepRatioRecord> Ratio, class Visit>
void visit_fields(Ratio& ratio, Visit visit) {
  visit({"reference", kColumn, "step_reference"}, ratio.reference);
  visit({"ratio", kColumn, "step_ratio"}, ratio.ratio);
  visit({"interval", kColumn, "step_ratio_*"}, ratio.interval);
  visit({"verdict", kColumn, "step_verdict"}, ratio.verdict);
}

// The A/A control: the reference is timed twice, either alternately or in two processes, and
// `ratio` is the quotient. If a policy's ratio is closer to 1 than this ratio, it may be noise.
struct ControlRecord {
  double ratio = 1;
  std::optional<std::array<double, 2>> interval;  // 95 % interval; absent if only one round ran
  bool operator==(const ControlRecord&) const = default;
};

template <RecordOf<ControlRecord> Control, class Visit>
void visit_fields(Control& control, Visit visit) {
  visit("ratio", control.ratio);
  visit("interval", control.interval);
}

// How reliable the samples are. `verdict` is good, few_rounds, noisy or drifting, or names a
// problem of the device: throttled, shared_device, thrashing.
struct TimeQuality {
  std::string verdict;
  std::optional<double> noise_ratio;  // spread within a round divided by the median
  std::optional<double> drift_ratio;  // last third of a round divided by its first third, minus 1
  std::vector<std::string> reasons;   // the reasons for the verdict, one line each
  // number of samples far above the other samples of their round; they are not removed
  std::optional<int> num_outliers;
  bool operator==(const TimeQuality&) const = default;
};

template <RecordOf<TimeQuality> Quality, class Visit>
void visit_fields(Quality& quality, Visit visit) {
  visit({"verdict", kColumn, "time_quality"}, quality.verdict);
  visit("noise_ratio", quality.noise_ratio);
  visit("drift_ratio", quality.drift_ratio);
  visit("reasons", quality.reasons);
  visit({"num_outliers", kLater}, quality.num_outliers);
}

// The state of the GPU while its steps were timed. The state was read between steps, over all
// rounds.
struct DeviceStateRecord {
  std::optional<int> sm_clock_median_mhz;
  std::optional<int> sm_clock_least_mhz;
  std::optional<int> memory_clock_least_mhz;
  std::optional<int> temperature_most_celsius;
  // all reasons why clocks were lowered, such as "sw_power_cap"
  std::vector<std::string> throttle_reasons;
  // highest number of other processes that used the GPU at one time
  std::optional<int> other_processes;
  // How often the allocator found no memory, released its cache and retried.
  std::optional<std::int64_t> allocator_retries;
  // Number of rounds that were discarded and repeated because the GPU was throttled or shared.
  std::optional<int> round_repeats;
  bool operator==(const DeviceStateRecord&) const = default;
};

template <RecordOf<DeviceStateRecord> State, class Visit>
void visit_fields(State& state, Visit visit) {
  visit("sm_clock_median_mhz", state.sm_clock_median_mhz);
  visit("sm_clock_least_mhz", state.sm_clock_least_mhz);
  visit("memory_clock_least_mhz", state.memory_clock_least_mhz);
  visit("temperature_most_celsius", state.temperature_most_celsius);
  visit("throttle_reasons", state.throttle_reasons);
  visit("other_processes", state.other_processes);
  visit("allocator_retries", state.allocator_retries);
  Field repeats{"round_repeats", kLater};
  repeats.former = "block_repeats";
  visit(repeats, state.round_repeats);
}

struct TimeRecord {
  using Nanoseconds = std::chrono::nanoseconds;
  std::vector<std::vector<Nanoseconds>> samples;  // [round][step]: all samples, in order
  // For each round, the start time of the command that measured it. Different times mean that the
  // rounds of two points did not alternate. Empty if not recorded.
  std::vector<std::string> starts;
  std::optional<Nanoseconds> step_median;
  std::optional<std::array<Nanoseconds, 2>> step_interval;  // 95 % interval of the median
  std::optional<Nanoseconds> step_mad;                      // median absolute deviation of the step
                                                            // time
  std::map<std::string, Nanoseconds> phases;  // median per step: "forward", "backward"
  // time per step, measured in a separate pass
  std::array<std::map<OpClass, Nanoseconds>, kNumPhases> classes;
  std::optional<StepRatioRecord> ratio;
  std::optional<ControlRecord> control;  // only the reference has a control
  std::optional<TimeQuality> quality;
  // absent without a GPU, or if its driver reported nothing
  std::optional<DeviceStateRecord> device_state;
  // True if the steps were timed with deterministic kernels, false if they were timed with the
  // fastest kernels. Absent if the fastest kernels are deterministic.
  std::optional<bool> repeatable_bits;
  // True if each timed step was a replay of one captured CUDA graph. Phases are then unknown.
  // Absent if steps ran op by op.
  std::optional<bool> replayed;
  // The attention backend of the timed steps, which may differ from the backend in the point's
  // identity. Empty if the device is not CUDA.
  std::string attention_backend;
  // The device allocator's peaks while steps were timed. They may differ from the peaks in the
  // memory record, because timed steps may run other kernels. Absent on a device without such an
  // allocator.
  std::optional<Bytes> peak_requested;
  std::optional<Bytes> peak_allocated;
  std::optional<Bytes> peak_reserved;
  bool operator==(const TimeRecord&) const = default;
};

template <RecordOf<TimeRecord> Time, class Visit>
void visit_fields(Time& time, Visit visit) {
  visit({"step_median_ns", kColumn}, time.step_median);
  visit({"step_interval_ns", kColumn, "step_interval_*_ns"}, time.step_interval);
  visit("step_mad_ns", time.step_mad);
  visit("samples_ns", time.samples);
  visit({"starts", kLater}, time.starts);
  visit("phases_ns", time.phases);
  visit("classes_ns", time.classes);
  visit("step_ratio", time.ratio);
  visit({"control", kLater}, time.control);
  visit("quality", time.quality);
  visit({"device_state", kLater}, time.device_state);
  visit({"repeatable_bits", kLater}, time.repeatable_bits);
  visit({"replayed", kLater | kOmitIfEmpty}, time.replayed);
  visit({"attention_backend", kLater | kNullIfEmpty}, time.attention_backend);
  visit({"peak_requested_bytes", kLater}, time.peak_requested);
  visit({"peak_allocated_bytes", kLater}, time.peak_allocated);
  visit({"peak_reserved_bytes", kLater}, time.peak_reserved);
}

// The readers throw FormatError if a value contradicts the record's other fields.
void read_value(const JsonField& field, TimeQuality& quality);
void read_value(const JsonField& field, TimeRecord& time);

}  // namespace rematch
