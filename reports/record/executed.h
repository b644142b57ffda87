// The ops, kernels and collectives between ranks that a point's steps executed.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/base/record_fields.h"
#include "policies/trace/op_class.h"
#include "policies/trace/phase.h"

namespace rematch {

// Executed ops by phase, summed over all counted steps.
using ClassCounts = std::array<std::map<OpClass, std::int64_t>, kNumPhases>;
using OpCounts = std::array<std::map<std::string, std::int64_t>, kNumPhases>;

struct CountsRecord {
  int counted_steps = 0;
  ClassCounts by_class;  // "counts" in JSON, where the key is the name of the class
  OpCounts by_op;  // "ops" in JSON; the key is the dispatcher's name with overload: "aten::mm"
  bool operator==(const CountsRecord&) const = default;
};

// Totals over several memory copies and memory sets.
struct TransferRecord {
  std::int64_t count = 0;
  Bytes bytes;
  // absent for the dry device, which runs no transfers
  std::optional<std::chrono::nanoseconds> time;
  bool operator==(const TransferRecord&) const = default;
};

template <RecordOf<TransferRecord> Transfers, class Visit>
void visit_fields(Transfers& transfers, Visit visit) {
  visit("count", transfers.count);
  visit("bytes", transfers.bytes);
  visit("time_ns", transfers.time);
}

// The kernels that the device ran in the counted steps, from its activity records. Names are kernel
// classes: "matmul", "attention_forward".
struct KernelRecord {
  using Nanoseconds = std::chrono::nanoseconds;
  int counted_steps = 0;
  std::array<std::map<std::string, std::int64_t>, kNumPhases> count;
  std::array<std::map<std::string, Nanoseconds>, kNumPhases> time;
  // Counts by the kernels' own names, without template arguments.
  std::array<std::map<std::string, std::int64_t>, kNumPhases> launches;
  std::int64_t dropped_records = 0;
  std::int64_t lost_records = 0;          // number of launched kernels without a complete record
  std::int64_t unattributed_kernels = 0;  // number of kernels that no op launched
  std::int64_t badly_stamped_records = 0;
  double unknown_time_ratio = 0;  // share of the kernel time spent in kernels of unknown class
  std::vector<std::string> unknown_names;
  std::map<std::string, Nanoseconds> unknown_times;  // times of kernels of unknown class, by name
  // Transfers that belong to no phase: copies that the plan's offload started, and transfers that
  // no op started. Absent if there were no such transfers.
  std::optional<TransferRecord> offload_copies;
  std::optional<TransferRecord> unattributed_transfers;
  // step time with counting, divided by step time without counting
  std::optional<double> slowdown_ratio;
  std::string note;     // a remark about usable figures; may be empty
  std::string invalid;  // why the figures must not be used; empty if usable
  bool is_usable() const { return invalid.empty() && counted_steps > 0; }
  bool operator==(const KernelRecord&) const = default;
};

template <RecordOf<KernelRecord> Kernels, class Visit>
void visit_fields(Kernels& kernels, Visit visit) {
  visit("counted_steps", kernels.counted_steps);
  visit("kernel_count", kernels.count);
  visit("kernel_time_ns", kernels.time);
  visit({"launches", kLater}, kernels.launches);
  visit("dropped_records", kernels.dropped_records);
  visit({"lost_records", kLater}, kernels.lost_records);
  visit("unattributed_kernels", kernels.unattributed_kernels);
  visit("badly_stamped_records", kernels.badly_stamped_records);
  visit("unknown_time_ratio", kernels.unknown_time_ratio);
  visit("unknown_names", kernels.unknown_names);
  visit({"unknown_time_ns", kLater}, kernels.unknown_times);
  visit({"offload_copies", kLater}, kernels.offload_copies);
  visit({"unattributed_transfers", kLater}, kernels.unattributed_transfers);
  visit("slowdown_ratio", kernels.slowdown_ratio);
  visit({"note", kLater | kNullIfEmpty}, kernels.note);
  visit({"invalid", kNullIfEmpty}, kernels.invalid);
}

// One of the ranks on which a point ran.
struct RankRecord {
  int rank = 0;
  std::optional<Bytes> peak_allocated;
  std::optional<Bytes> after_forward;
  // The peak that the plan of this rank's stage predicts. Absent without a pipeline: all ranks then
  // have the point's predicted peak.
  std::optional<Bytes> predicted_peak;
  bool operator==(const RankRecord&) const = default;
};

template <RecordOf<RankRecord> Rank, class Visit>
void visit_fields(Rank& rank, Visit visit) {
  visit("rank", rank.rank);
  visit("peak_allocated_bytes", rank.peak_allocated);
  visit("after_forward_bytes", rank.after_forward);
  visit({"predicted_peak_allocated_bytes", kLater | kOmitIfEmpty}, rank.predicted_peak);
}

// The ranks of a point that ran on several ranks, or that simulates one of several ranks. The
// point's memory is that of the rank with the highest peak. Collectives are counted per rank over
// the counted steps. The bytes of a collective are the larger of its input and its output.
struct RanksRecord {
  using Counts = std::array<std::map<std::string, std::int64_t>, kNumPhases>;
  int counted_steps = 0;
  Counts collectives;
  Counts collective_bytes;
  // collectives that the plan predicts for the same number of steps
  std::optional<Counts> predicted_collectives;
  std::vector<RankRecord> ranks;  // records of the ranks that ran
  int worst_rank = 0;             // the rank with the highest peak
  bool operator==(const RanksRecord&) const = default;
};

template <RecordOf<RanksRecord> Ranks, class Visit>
void visit_fields(Ranks& ranks, Visit visit) {
  visit("counted_steps", ranks.counted_steps);
  visit("collectives", ranks.collectives);
  visit("collective_bytes", ranks.collective_bytes);
  visit("predicted_collectives", ranks.predicted_collectives);
  visit("ranks", ranks.ranks);
  visit("worst_rank", ranks.worst_rank);
}

}  // namespace rematch
