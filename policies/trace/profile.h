// A profile: a trace's ops with times, for one device. Measured, or computed from the device's data
// sheet; never both. What it says of one layer holds for all layers of that type: figures are
// medians over steps and over the layers, so equal layers have equal times.
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
  std::string trace_sha256;  // of the trace whose ops these are
  // Hash of the ops' names where the writer cannot compute the trace's hash, which is then empty:
  // profile_for_trace() (measured_profile.h) makes such a profile whole.
  std::string ops_sha256;
  std::string device;  // "cpu", "h100"
  // The GPU that was measured, as its driver names it: "NVIDIA H100 80GB HBM3". Empty: none was, or
  // the file does not say.
  std::string card;
  // The attention kernel of the measured steps: "flash", "cudnn". Empty: a roofline, or not known.
  std::string attention_backend;
  // Whether they were measured with kernels that repeat their bits. Absent: a roofline, not known,
  // or a device whose kernels all do.
  std::optional<bool> repeatable_bits;
  ProfileSource source = ProfileSource::kMeasured;
  int num_steps = 0;  // that were measured; 0 for a roofline
  // Times come from a model of so many layers (project_profile.h); nothing: from the whole one.
  std::optional<int> measured_layers;
  IdTable<OpId, Duration> forward;  // a recompute of the op takes as long
  std::vector<Duration> backward;   // by op of backward: the k-th event of kind kOp
  Duration optimizer{};             // with the sums of gradients over ranks that come before it
  Duration gradient_sums{};         // these
  // Which measured links the times of collectives are from; empty: the source's own.
  std::string links;
  // Time of a step without checkpointing beyond its ops: autograd, the program between ops.
  Duration forward_between_ops{};
  Duration backward_between_ops{};
  // Bytes that a kernel allocates inside, above the op boundary, ordered as the times. Absent where
  // it was not measured.
  std::optional<IdTable<OpId, Bytes>> forward_temporary;
  std::optional<std::vector<Bytes>> backward_temporary;
  // Kernels that an op of forward launches; a recompute of it launches as many. Absent
  // where the device has none, or nobody counted.
  std::optional<IdTable<OpId, std::int32_t>> forward_kernels;
  bool operator==(const Profile&) const = default;

  // Figures of one step without checkpointing.
  Duration forward_time() const;
  Duration backward_time() const;
  Duration step_time() const { return forward_time() + backward_time() + optimizer; }
};

// The most that a kernel allocates inside itself; nothing where it was not measured.
std::optional<Bytes> most_temporary(const Profile& profile);

// The note of a prediction for a GPU without these: bytes at op boundaries are exact, what
// kernels hold inside comes on top.
inline constexpr std::string_view kTemporariesNotMeasured =
    "temporaries not measured: a bound, kernels may hold more inside";

// SHA-256, in hex, of the names of the ops of forward and then of backward, a line each without the
// last line's end.
std::string ops_sha256(const Trace& trace);

// Why the profile is not one of this trace, in one line that says what to do; nothing if it is.
std::optional<std::string> profile_problem(const Profile& profile, const Trace& trace);

}  // namespace rematch
