// A profile: the ops of a trace with their times on one device. All times are measured, or all are
// computed from the device's data sheet. Equal layers have equal times, because a measured time is
// a median over steps and equal layers.
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
#include "policies/base/words.h"
#include "policies/trace/trace.h"

namespace rematch {

enum class ProfileSource : std::uint8_t { kMeasured, kRoofline };

template <>
inline constexpr std::array<std::string_view, 2> kWords<ProfileSource> = {"measured", "roofline"};

struct Profile {
  using Duration = std::chrono::nanoseconds;

  std::string model;
  std::map<std::string, std::int64_t> dimensions;
  std::string dtype;
  std::string trace_sha256;  // hash of the trace that has these ops
  // Hash of the ops' names. A writer that cannot compute the trace's hash writes this hash and
  // leaves trace_sha256 empty. profile_for_trace() (measured_profile.h) then completes the profile.
  std::string ops_sha256;
  std::string device;  // "cpu", "h100"
  // The name that the driver gives the measured GPU: "NVIDIA H100 80GB HBM3". Empty: no GPU was
  // measured, or the file does not say.
  std::string card;
  // The attention kernel of the measured steps: "flash", "cudnn". Empty for a roofline, or if
  // unknown.
  std::string attention_backend;
  // Whether the kernels of the measured steps give the same bits in every run. Absent for a
  // roofline, if unknown, or if all kernels of the device do so.
  std::optional<bool> repeatable_bits;
  ProfileSource source = ProfileSource::kMeasured;
  int num_steps = 0;  // number of measured steps; 0 for a roofline
  // The number of layers of the measured model, if it was smaller than this model
  // (project_profile.h). Absent: this model itself was measured.
  std::optional<int> measured_layers;
  // Time of each forward op in a step, summed over its micro-batches. Recomputing the op takes the
  // same time. All other times are of a whole step, too.
  IdTable<OpId, Duration> forward;
  std::vector<Duration> backward;  // indexed by op of backward: the k-th event of kind kOp
  Duration optimizer{};            // includes gradient_sums, which run before the optimizer
  Duration gradient_sums{};        // sums of gradients over ranks
  // The measured links that determine the times of collectives. Empty: the times of collectives
  // have the same source as all other times.
  std::string links;
  // The measured ceilings that determine a roofline's times. Empty: the data sheet's peak rates do.
  std::string ceilings;
  // Time between ops in a step without checkpointing, spent by autograd and by the program.
  Duration forward_between_ops{};
  Duration backward_between_ops{};
  // Bytes that a kernel allocates internally, in addition to the bytes at the op boundary. Indexed
  // like the times. Absent: not measured.
  std::optional<IdTable<OpId, Bytes>> forward_temporary;
  std::optional<std::vector<Bytes>> backward_temporary;
  // Number of kernels that a forward op launches in a step; recomputing the op launches the same
  // number.
  // Absent: the device has no kernels, or they were not counted.
  std::optional<IdTable<OpId, std::int32_t>> forward_kernels;
  bool operator==(const Profile&) const = default;

  // Times of one step without checkpointing.
  Duration forward_time() const;
  Duration backward_time() const;
  Duration step_time() const { return forward_time() + backward_time() + optimizer; }
};

// Converts the times and kernels of one micro-batch to a step of `num` of them. The optimizer runs
// once.
void repeat_micro_batch(Profile& profile, std::int64_t num);

// Returns the most bytes that a single kernel allocates internally, or nullopt if these bytes were
// not measured.
std::optional<Bytes> most_temporary(const Profile& profile);

// The note that is shown with a GPU prediction if temporaries were not measured. Such a prediction
// is exact at op boundaries, but omits memory that kernels allocate internally.
inline constexpr std::string_view kTemporariesNotMeasured =
    "a lower bound: excludes memory that kernels allocate for themselves";

// Returns the SHA-256, in hex, of the names of all ops, separated by newlines. Ops of forward
// precede ops of backward.
std::string ops_sha256(const Trace& trace);

// Returns nullopt if the profile belongs to this trace. Otherwise returns one line with the reason
// and what to do.
std::optional<std::string> profile_problem(const Profile& profile, const Trace& trace);

}  // namespace rematch
