// Memory of a point's step, on the device and on the host.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/base/json_fwd.h"
#include "policies/base/record_fields.h"
#include "policies/base/words.h"
#include "policies/trace/holder.h"
#include "policies/trace/host_memory.h"
#include "policies/trace/phase.h"

namespace rematch {

// Bytes by holder, such as parameters or gradients. Holders that were not measured are absent.
using HeldBytes = std::map<Holder, Bytes>;

// Bytes by holder over one step, with at most one sample per op boundary. Columns have one entry
// per sample: `bytes[holder][sample]`.
struct MemoryTimeline {
  std::vector<std::int64_t> op_index;  // number of ops executed before the sample
  std::vector<Phase> phase;
  std::map<Holder, std::vector<std::int64_t>> bytes;
  bool operator==(const MemoryTimeline&) const = default;
};

Json to_value(const MemoryTimeline& timeline);
void read_value(const JsonField& field, MemoryTimeline& timeline);

// Host memory that the plan's offloaded values take in one step.
struct HostRecord : HostMemory {
  std::optional<Bytes> predicted_peak;
  std::optional<Bytes> predicted_copied_out;
  std::optional<Bytes> predicted_copied_back;
  // hidden_time is copy time that overlaps compute; exposed_time is copy time that compute waits
  // for. On a CPU all copy time is exposed. Absent if no copy takes time, as on the dry device.
  std::optional<std::chrono::nanoseconds> hidden_time;
  std::optional<std::chrono::nanoseconds> exposed_time;
  bool operator==(const HostRecord&) const = default;
};

template <RecordOf<HostRecord> Host, class Visit>
void visit_fields(Host& host, Visit visit) {
  visit("peak_bytes", host.peak);
  visit("copied_out_bytes", host.copied_out);
  visit("copied_back_bytes", host.copied_back);
  visit("predicted_peak_bytes", host.predicted_peak);
  visit("predicted_copied_out_bytes", host.predicted_copied_out);
  visit("predicted_copied_back_bytes", host.predicted_copied_back);
  visit({"hidden_time_ns", kNotRepeated}, host.hidden_time);
  visit({"exposed_time_ns", kNotRepeated}, host.exposed_time);
}

// Names of the parts of a step whose peaks are recorded in addition to the peaks of phases.
inline constexpr std::string_view kLossPart = "loss";
// The part "backward.blocks.3" is the backward of the top-level scope "blocks.3".
inline constexpr std::string_view kBackwardOf = "backward.";
inline bool is_of_block(std::string_view part) { return part.starts_with(kBackwardOf); }

// Bytes at op boundaries. They include parameters unless the member's name says otherwise. After a
// failure, the record contains the values up to the failure.
struct MemoryRecord {
  std::optional<Bytes> peak_allocated;
  std::optional<Bytes> peak_requested;  // bytes that tensors requested, before rounding
  // largest temporary memory of one kernel, freed before its op ends
  std::optional<Bytes> peak_transient;
  std::optional<Bytes> peak_reserved;     // bytes that CUDA's caching allocator reserved
  std::optional<Bytes> peak_device_used;  // bytes in use on the whole CUDA device
  std::optional<Phase> peak_phase;
  std::string peak_scope;              // "blocks.3", "head", "loss"; empty if none or unknown
  std::optional<Bytes> after_forward;  // bytes at the start of backward
  std::optional<Bytes> parameter;
  std::optional<Bytes> baseline;  // bytes between two steps: parameters, optimizer state, data
  std::optional<Bytes> baseline_requested;
  // CUDA: allocator memory that libraries hold between two steps, such as cuBLAS workspaces.
  std::optional<Bytes> workspace;
  HeldBytes holders_at_peak;  // sums to peak_allocated; empty if not measured
  // Peaks of parts of the step: "forward", "loss", "recompute", "backward", "optimizer", and
  // "backward.<scope>" for one block.
  std::map<std::string, Bytes> peak_by_phase;
  // The bytes of each holder at the peak of each phase. They sum to that peak. Single blocks have
  // no entry.
  std::map<std::string, HeldBytes> holders_by_phase;
  std::optional<Bytes> dead_save;  // bytes that the plan saves although nothing reads them
  std::optional<Bytes> predicted_peak_allocated;
  std::optional<Bytes> predicted_peak_requested;  // excludes the workspaces of libraries
  std::optional<Bytes> predicted_after_forward;
  std::optional<HostRecord> host;   // absent if the plan offloads nothing
  std::string predicted_peak_note;  // what the predicted peak leaves out; may be empty
  std::optional<MemoryTimeline> timeline;
  bool operator==(const MemoryRecord&) const = default;
};

// Returns the peak that a prediction refers to. On CUDA, this peak counts the bytes that tensors
// request, without libraries' workspaces. On other devices, tensors are the only allocations, so
// the allocated bytes count.
inline std::optional<Bytes> peak_of_tensors(const MemoryRecord& memory) {
  if (!memory.workspace || !memory.peak_requested) return memory.peak_allocated;
  return *memory.peak_requested - *memory.workspace;
}

template <RecordOf<MemoryRecord> Memory, class Visit>
void visit_fields(Memory& memory, Visit visit) {
  visit({"peak_allocated_bytes", kColumn}, memory.peak_allocated);
  visit({"predicted_peak_allocated_bytes", kColumn}, memory.predicted_peak_allocated);
  visit({"peak_transient_bytes", kNotRepeated | kColumn}, memory.peak_transient);
  visit({"peak_reserved_bytes", kNotRepeated | kColumn}, memory.peak_reserved);
  visit({"peak_phase", kColumn}, memory.peak_phase);
  visit({"peak_scope", kNullIfEmpty | kColumn}, memory.peak_scope);
  visit({"after_forward_bytes", kColumn}, memory.after_forward);
  visit({"parameter_bytes", kColumn}, memory.parameter);
  visit({"peak_requested_bytes", kLater}, memory.peak_requested);
  visit({"peak_device_used_bytes", kNotRepeated}, memory.peak_device_used);
  visit("baseline_bytes", memory.baseline);
  visit({"baseline_requested_bytes", kLater}, memory.baseline_requested);
  visit({"workspace_bytes", kLater}, memory.workspace);
  visit("holders_at_peak", memory.holders_at_peak);
  visit("peak_by_phase_bytes", memory.peak_by_phase);
  visit({"holders_by_phase", kLater | kNullIfEmpty}, memory.holders_by_phase);
  visit("dead_save_bytes", memory.dead_save);
  visit({"predicted_peak_requested_bytes", kLater}, memory.predicted_peak_requested);
  visit("predicted_after_forward_bytes", memory.predicted_after_forward);
  visit({"host", kLater | kOmitIfEmpty}, memory.host);
  visit({"predicted_peak_note", kLater | kOmitIfEmpty}, memory.predicted_peak_note);
  visit({"timeline", kNotRepeated}, memory.timeline);
}

}  // namespace rematch
