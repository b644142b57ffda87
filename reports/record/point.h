// The measurements of one point, or why there are none. Plain data; absent means not measured. Its
// JSON is in record_json.h, the JSON's words in reports/schema/point.schema.json.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/trace/op_class.h"
#include "policies/trace/phase.h"
#include "reports/record/holder.h"

namespace rematch {

// Every input that can change a count, a byte or a bit; nothing else. The point's key is its hash.
struct PointIdentity {
  std::string model;                               // preset name
  std::map<std::string, std::int64_t> dimensions;  // all of them, defaults included
  std::string data;                                // what was trained on: "builtin", "sha256:<hex>"
  std::uint64_t seed = 0;                          // below 2^53: JSON numbers are doubles to others
  std::string plan_sha256;
  Schedule schedule = Schedule::kOnDemand;
  std::string ops = "eager";                // or "fused"
  std::string attention_backend = "flash";  // or "cudnn", "efficient", "math"
  std::string dtype;                        // "float32"
  std::string optimizer;                    // "adamw", "none"
  bool deterministic = true;
  std::string allocator;  // "cpu_counting", "meta_counting", "cuda_caching"
  int threads = 1;
  int world = 1;
  std::optional<int> pretended_rank;  // that one process stood for, alone; absent: all ranks ran
  bool operator==(const PointIdentity&) const = default;
};

// SHA-256, in hex, of the identity's canonical JSON.
std::string point_key(const PointIdentity& identity);

enum class PointStatus : std::uint8_t { kOk, kOom, kTimeout, kCrash, kSkipped, kInvalid };

// Executed ops of all counted steps together, by phase.
using ClassCounts = std::array<std::map<OpClass, std::int64_t>, kNumPhases>;
using OpCounts = std::array<std::map<std::string, std::int64_t>, kNumPhases>;

struct CountsRecord {
  int counted_steps = 0;
  ClassCounts by_class;  // JSON "counts": class names
  OpCounts by_op;        // JSON "ops": dispatcher names with overload, "aten::mm"
  bool operator==(const CountsRecord&) const = default;
};

// Bytes by holder over one step, a sample for each op boundary (or fewer). Columns have one entry
// a sample: `bytes[holder][sample]`.
struct MemoryTimeline {
  std::vector<std::int64_t> op_index;  // ops executed before the sample
  std::vector<Phase> phase;
  std::map<Holder, std::vector<std::int64_t>> bytes;
  bool operator==(const MemoryTimeline&) const = default;
};

// Bytes at op boundaries, parameters included unless the name says otherwise. After a failure it
// holds what was reached.
// Host memory that holds what a plan offloads, in one step.
struct HostRecord {
  Bytes peak;
  Bytes copied_out;   // from the device
  Bytes copied_back;  // to it
  std::optional<Bytes> predicted_peak;
  std::optional<Bytes> predicted_copied_out;
  std::optional<Bytes> predicted_copied_back;
  // Copy time beside compute, and copy time that compute waits for, which on a CPU is all of it.
  // Absent: nothing was copied that takes time, as on the dry device.
  std::optional<std::chrono::nanoseconds> hidden_time;
  std::optional<std::chrono::nanoseconds> exposed_time;
  bool operator==(const HostRecord&) const = default;
};

struct MemoryRecord {
  std::optional<Bytes> peak_allocated;
  std::optional<Bytes> peak_requested;    // as tensors asked for it, before any rounding
  std::optional<Bytes> peak_transient;    // most that kernels allocated inside, above the boundary
  std::optional<Bytes> peak_reserved;     // CUDA's caching allocator
  std::optional<Bytes> peak_device_used;  // CUDA, the whole device
  std::optional<Phase> peak_phase;
  std::string peak_scope;              // "blocks.3", "head", "loss"; empty: none or unknown
  std::optional<Bytes> after_forward;  // when backward starts
  std::optional<Bytes> parameter;
  std::optional<Bytes> baseline;  // between two steps: parameters, optimizer state, data
  std::optional<Bytes> baseline_requested;
  // CUDA: what libraries hold of the allocator's memory between two steps, as cuBLAS its
  // workspaces.
  std::optional<Bytes> workspace;
  HeldBytes holders_at_peak;  // sums to peak_allocated; empty: not measured
  // Peaks of parts of the step: "forward", "loss", "recompute", "backward", "optimizer", and
  // "backward.<scope>" for one block.
  std::map<std::string, Bytes> peak_by_phase;
  // The holders of each, but not for single blocks. They sum to the phase's peak.
  std::map<std::string, HeldBytes> holders_by_phase;
  std::optional<Bytes> dead_save;  // saved by the plan, read by nothing
  std::optional<Bytes> predicted_peak_allocated;
  std::optional<Bytes> predicted_peak_requested;  // without workspaces
  std::optional<Bytes> predicted_after_forward;
  std::optional<HostRecord> host;   // absent: the plan offloads nothing
  std::string predicted_peak_note;  // what the predicted peak leaves out; empty: nothing
  std::optional<MemoryTimeline> timeline;
  bool operator==(const MemoryRecord&) const = default;
};

// Step time of this point over the reference's, paired by round. `verdict` is faster, slower, same
// or unsure.
struct StepRatioRecord {
  std::string reference;  // policy: "none"
  double ratio = 1;
  std::optional<std::array<double, 2>> interval;  // 95 %; absent with one round
  std::string verdict;
  bool operator==(const StepRatioRecord&) const = default;
};

// The A/A control: the reference was timed once more by turns, and this is the one time over the
// other. How far it strays from 1 is what no ratio to the reference can be told from.
struct ControlRecord {
  double ratio = 1;
  std::optional<std::array<double, 2>> interval;  // 95 %; absent with one round
  bool operator==(const ControlRecord&) const = default;
};

// How far the samples can be trusted: verdict is good, few_rounds, noisy, drifting; or what was
// wrong with the device: throttled, shared_device, thrashing.
struct TimeQuality {
  std::string verdict;
  std::optional<double> noise_ratio;  // spread within a round over the median
  std::optional<double> drift_ratio;  // last third over first third, less one
  std::vector<std::string> reasons;   // one line each
  std::optional<int> num_outliers;    // samples far above their round; kept among the samples
  bool operator==(const TimeQuality&) const = default;
};

// The GPU while its steps were timed, read between steps: over all rounds.
struct DeviceStateRecord {
  std::optional<int> sm_clock_median_mhz;
  std::optional<int> sm_clock_least_mhz;
  std::optional<int> memory_clock_least_mhz;
  std::optional<int> temperature_most_celsius;
  std::vector<std::string> throttle_reasons;  // what ever held the clocks down: "sw_power_cap"
  std::optional<int> other_processes;         // most at once
  // Times the allocator found no memory, gave its cache back and tried again.
  std::optional<std::int64_t> allocator_retries;
  // Attempts at a round that were left and measured again, because the GPU was throttled or shared.
  std::optional<int> round_repeats;
  bool operator==(const DeviceStateRecord&) const = default;
};

struct TimeRecord {
  using Nanoseconds = std::chrono::nanoseconds;
  std::vector<std::vector<Nanoseconds>> samples;  // [round][step]: every one, in order
  // For each round, which start of the command timed it. Rounds of two points were timed side by
  // side only if they are of one start. Empty: not recorded.
  std::vector<std::string> starts;
  std::optional<Nanoseconds> step_median;
  std::optional<std::array<Nanoseconds, 2>> step_interval;  // of the median, 95 %
  std::optional<Nanoseconds> step_mad;                      // median absolute deviation
  std::map<std::string, Nanoseconds> phases;                // median a step: "forward", "backward"
  std::array<std::map<OpClass, Nanoseconds>, kNumPhases> classes;  // a step, by its own pass
  std::optional<StepRatioRecord> ratio;
  std::optional<ControlRecord> control;  // of the reference alone
  std::optional<TimeQuality> quality;
  std::optional<DeviceStateRecord> device_state;  // absent: no GPU, or its driver says nothing
  // Timed with the kernels that repeat their bits, or with the fastest; absent: they are the same.
  std::optional<bool> repeatable_bits;
  std::string attention_backend;  // on CUDA, where it need not be the identity's; empty: it is
  bool operator==(const TimeRecord&) const = default;
};

// One training step. Bits are hex strings, so equality does not depend on printing.
struct StepRecord {
  std::optional<double> loss;      // absent: not finite; loss_bits says which
  std::string loss_bits;           // "0x40490fdb"
  std::string gradient_norm_bits;  // empty strings: not recorded
  std::string parameter_hash;      // parameters and buffers after the step
  std::string generator_hash;
  std::map<std::string, std::string> gradient_hashes;  // by parameter; empty: not recorded
  bool operator==(const StepRecord&) const = default;
};

// This point against the reference, step by step. Absent: could not be compared.
struct ParityRecord {
  std::string reference;         // policy: "none"
  std::string reference_reason;  // why it is not the one asked for; empty: it is
  int compared_steps = 0;
  std::optional<bool> loss_bits_equal;
  std::optional<bool> gradient_bits_equal;
  std::optional<bool> parameter_hash_equal;
  std::optional<bool> generator_hash_equal;
  std::optional<int> first_different_step;           // from 0
  std::string first_different_tensor;                // "loss", "blocks.0.attention.wq.weight"
  std::optional<bool> every_parameter_has_gradient;  // non-zero, in the first step
  std::string first_parameter_without_gradient;
  bool operator==(const ParityRecord&) const = default;
};

// Does the plan do what its policy says, and did the run do what the plan says.
struct EffectRecord {
  std::string same_as;    // "none", "full": the plan equals that one's; empty: neither
  bool intended = false;  // the policy's name or arguments say so
  std::optional<bool> counts_equal_prediction;
  std::string detail;  // the first difference, in a line
  bool operator==(const EffectRecord&) const = default;
};

// The kernels that the device ran in the counted steps, by its activity records. Names are kernel
// classes: "matmul", "attention_forward".
struct KernelRecord {
  using Nanoseconds = std::chrono::nanoseconds;
  int counted_steps = 0;
  std::array<std::map<std::string, std::int64_t>, kNumPhases> count;
  std::array<std::map<std::string, Nanoseconds>, kNumPhases> time;
  // By the kernels' own names, without template arguments.
  std::array<std::map<std::string, std::int64_t>, kNumPhases> launches;
  std::int64_t dropped_records = 0;
  std::int64_t unattributed_kernels = 0;  // that no op launched
  std::int64_t badly_stamped_records = 0;
  double unknown_time_ratio = 0;  // time of kernels of no known class, over all
  std::vector<std::string> unknown_names;
  std::optional<double> slowdown_ratio;  // a step while counting over one without
  std::string note;                      // what is to be known of usable figures; empty: nothing
  std::string invalid;                   // why the figures are not to be used; empty: they are
  bool is_usable() const { return invalid.empty() && counted_steps > 0; }
  bool operator==(const KernelRecord&) const = default;
};

// One of the ranks that a point ran on.
struct RankRecord {
  int rank = 0;
  std::optional<Bytes> peak_allocated;
  std::optional<Bytes> after_forward;
  bool operator==(const RankRecord&) const = default;
};

// A point that ran on several ranks, or as one of several; the point's other figures are the worst
// rank's, and bits are compared on every rank. Collectives are those of each rank in the counted
// steps, by what they do: "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast".
// A collective's bytes are the larger of what goes into it and what comes out on the rank.
struct RanksRecord {
  using Counts = std::array<std::map<std::string, std::int64_t>, kNumPhases>;
  int counted_steps = 0;
  Counts collectives;
  Counts collective_bytes;
  std::optional<Counts> predicted_collectives;  // of as many steps
  std::vector<RankRecord> ranks;                // those that ran
  int worst_rank = 0;                           // of the highest peak
  bool operator==(const RanksRecord&) const = default;
};

// How a point that is not ok ended.
struct FailureRecord {
  std::optional<int> exit_code;
  std::optional<int> signal;
  std::optional<Bytes> requested;  // the allocation that failed
  std::optional<Phase> phase;      // of the step that did; absent outside a step
  bool operator==(const FailureRecord&) const = default;
};

struct PointRecord {
  PointIdentity identity;
  std::string policy;  // canonical spelling: "nth_last(2)"
  std::string device;  // "cpu", "meta", "cuda"
  PointStatus status = PointStatus::kOk;
  std::string reason;  // one line; empty where status is ok
  std::optional<FailureRecord> failure;
  std::optional<std::int64_t> warm_up_steps;  // whole steps before every figure
  std::optional<CountsRecord> counts;
  std::optional<ClassCounts> predicted_counts;  // for the same number of steps
  std::optional<MemoryRecord> memory;
  std::optional<TimeRecord> time;
  std::optional<KernelRecord> kernels;
  std::string kernels_reason;  // why there are none on a device that runs kernels
  std::optional<RanksRecord> ranks;
  std::vector<StepRecord> steps;
  std::optional<ParityRecord> parity;
  std::optional<EffectRecord> effect;
  std::optional<std::int64_t> step_flops;  // matmul and attention flops executed in a step
  std::optional<std::int64_t> recomputed_step_flops;  // the part of them that recompute repeats
  std::optional<double> implied_flops_per_second;
  std::optional<double> most_flops_per_second;   // that the device can reach at this dtype
  std::optional<double> sheet_flops_per_second;  // that its data sheet promises, dense
  // MFU and HFU: the step's rate over the sheet's, without and with what recompute repeats.
  std::optional<double> model_flops_utilization;
  std::optional<double> hardware_flops_utilization;
  // JSON of the keys of a newer minor version, by JSON pointer: read, kept and written again.
  std::map<std::string, std::string> unknown;
};

std::string_view to_string(PointStatus status);

}  // namespace rematch
