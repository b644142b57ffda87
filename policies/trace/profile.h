// A profile: a trace's ops with their times on one device. The times are either all measured or all
// computed from the device's data sheet. A figure is a median over steps and over equal layers, so
// equal layers have equal times.
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
  std::string trace_sha256;  // the trace whose ops these are
  // Hash of the ops' names, from a writer that cannot compute the trace's hash. trace_sha256 is
  // then empty, and profile_for_trace() (measured_profile.h) completes the profile.
  std::string ops_sha256;
  std::string device;  // "cpu", "h100"
  // The measured GPU as its driver names it: "NVIDIA H100 80GB HBM3". Empty: no GPU was measured,
  // or the file does not say.
  std::string card;
  // The attention kernel of the measured steps: "flash", "cudnn". Empty: a roofline, or unknown.
  std::string attention_backend;
  // Whether the steps were measured with kernels whose results are bitwise repeatable. Absent: a
  // roofline, unknown, or a device whose kernels are all repeatable.
  std::optional<bool> repeatable_bits;
  ProfileSource source = ProfileSource::kMeasured;
  int num_steps = 0;  // number of measured steps; 0 for a roofline
  // The times were measured on a model with this many layers (project_profile.h). Absent: on the
  // whole model.
  std::optional<int> measured_layers;
  IdTable<OpId, Duration> forward;  // recomputing the op takes the same time
  std::vector<Duration> backward;   // indexed by op of backward: the k-th event of kind kOp
  Duration optimizer{};             // includes gradient_sums, which run before the optimizer
  Duration gradient_sums{};         // sums of gradients over ranks
  // The measured links behind the times of collectives. Empty: the times come from the profile's
  // source.
  std::string links;
  // Time of a step without checkpointing beyond its ops: autograd, and the program between ops.
  Duration forward_between_ops{};
  Duration backward_between_ops{};
  // Bytes that a kernel allocates internally, on top of the bytes at the op boundary. Indexed like
  // the times. Absent: not measured.
  std::optional<IdTable<OpId, Bytes>> forward_temporary;
  std::optional<std::vector<Bytes>> backward_temporary;
  // Number of kernels that a forward op launches; recomputing it launches as many. Absent: the
  // device has no kernels, or they were not counted.
  std::optional<IdTable<OpId, std::int32_t>> forward_kernels;
  bool operator==(const Profile&) const = default;

  // Times of one step without checkpointing.
  Duration forward_time() const;
  Duration backward_time() const;
  Duration step_time() const { return forward_time() + backward_time() + optimizer; }
};

// Returns the most that one kernel allocates internally, or nullopt if that was not measured.
std::optional<Bytes> most_temporary(const Profile& profile);

// The note on a GPU prediction that has no temporaries. Bytes at op boundaries are exact, but
// memory inside kernels comes on top.
inline constexpr std::string_view kTemporariesNotMeasured =
    "temporaries not measured: a bound, kernels may hold more inside";

// Returns the SHA-256, in hex, of the names of forward's ops and then backward's ops. Names are
// separated by newlines, without one at the end.
std::string ops_sha256(const Trace& trace);

// Explains in one line why the profile does not belong to this trace, and what to do. Returns
// nullopt if it belongs.
std::optional<std::string> profile_problem(const Profile& profile, const Trace& trace);

}  // namespace rematch
