// Computes a profile without measuring. The time of an op is that of its arithmetic or of its
// memory traffic, whichever is longer, at the peak rates of a data sheet. Kernel launches and gaps
// take no time, so real steps take longer. The profile is good for ranking plans by speed. With
// measured ceilings of the card, its times are also close to measured ones.
#pragma once

#include <optional>
#include <string>

#include "policies/predict/device/ceilings.h"
#include "policies/predict/device/device_sheet.h"
#include "policies/predict/device/links.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

struct NamedLinks {
  LinkProfile links;
  std::string name;  // "cpu.links.json: tp=2, measured on cpu over gloo"
};
struct NamedCeilings {
  Ceilings ceilings;
  std::string name;  // "h200.json: measured on NVIDIA H200"
};

// Measured figures that replace those of the data sheet. The profile stores their names.
struct MeasuredRates {
  std::optional<NamedLinks> links = std::nullopt;
  std::optional<NamedCeilings> ceilings = std::nullopt;
};

// Computes a roofline profile.
// - A trace has no shapes for ops of backward. Backward of a scope is assumed to take twice the
//   time of forward, spread evenly over the scope's backward ops except collectives.
// - The time of a collective follows from its bytes (collective_time.h) and the link rate of the
//   data sheet. Collectives do not overlap with other ops, and waits take no time.
// - The optimizer's time includes summing gradients over ranks.
// - Measured ceilings price each kind of op: Note [Which rate prices an op] in ceilings.h.
// Throws std::invalid_argument if links_problem() finds a problem of the measured links.
Profile roofline_profile(const Trace& trace, const DeviceSheet& sheet,
                         const MeasuredRates& measured = {});

// Returns the data sheet of the profile's device. If there is none, returns the data sheet of the
// profile's card, or null.
const DeviceSheet* sheet_of(const Profile& profile);

// Returns the bytes of the value, but at most the bytes of its storage.
Bytes value_bytes(const Trace& trace, ValueId id);

// Returns the bytes that a forward op reads and writes. Each input and each result counts once. For
// an embedding table, counts only the rows that are looked up. Views count as 0 bytes.
Bytes moved_bytes(const Trace& trace, const TracedOp& op);

// Returns the bytes that one AdamW step reads and writes if the step makes one pass over all
// parameters.
Bytes optimizer_moved_bytes(const Trace& trace);

// Compares a roofline profile with a measured profile of the same trace.
struct RooflineError {
  double step_time_ratio = 0;  // measured step time divided by the roofline's step time
  // median over forward ops of measured time divided by roofline time; skips ops without a roofline
  // time
  double median_op_ratio = 0;
};
RooflineError roofline_error(const Profile& roofline, const Profile& measured);

}  // namespace rematch
