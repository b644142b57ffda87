// Measured times of collectives and of copies to the host, by number of bytes. Predictions use
// these times instead of the link rate in a device's data sheet. harness/run/passes/link_pass.h
// measures them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/base/json_fwd.h"
#include "policies/trace/collective.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// The link between a device and the host's memory: bytes per second in each direction.
//
// Note [What hides a copy] Copies run in parallel with compute, on their own stream. Let N be the
// region after region R. R's values must be on the host when forward of N ends. The copy to the
// device starts when backward of N starts, and must be complete when backward reaches R (Note
// [Lifetime of stored values], policies/plan/treatment.h). In a searched plan, N is at least one
// block. The model therefore assumes that forward of the fastest block hides a copy to the host,
// and that backward of that block hides a copy to the device. The step waits for the rest of the
// copy. Recompute would hide more, and regions inside a block would hide less; the model ignores
// both. It also ignores the memory bandwidth that copies use.
struct HostLink {
  double to_host_bytes_per_second = 0;
  double to_device_bytes_per_second = 0;
  std::string source;  // "--link-rate 50GB/s", "data sheet of h100"
  // time for which compute hides one region's copies to the host
  std::chrono::nanoseconds hidden_out{};
  // time for which compute hides one region's copies to the device
  std::chrono::nanoseconds hidden_back{};
  // How often a step copies each value: the number of its micro-batches.
  std::int64_t copies_in_step = 1;

  // These functions return how long the step waits for the copies of one region.
  std::chrono::nanoseconds wait_out(Bytes bytes) const {
    return beyond(hidden_out, bytes, to_host_bytes_per_second);
  }
  std::chrono::nanoseconds wait_back(Bytes bytes) const {
    return beyond(hidden_back, bytes, to_device_bytes_per_second);
  }

 private:
  std::chrono::nanoseconds beyond(std::chrono::nanoseconds hidden, Bytes bytes,
                                  double bytes_per_second) const {
    constexpr double kNanosecondsInSecond = 1e9;
    const auto copied = static_cast<double>((bytes * copies_in_step).count);
    const std::chrono::nanoseconds copy(
        std::llround(copied / bytes_per_second * kNanosecondsInSecond));
    return std::max(copy - hidden, std::chrono::nanoseconds{});
  }
};

// Sets hidden_out, hidden_back and copies_in_step: see Note [What hides a copy]. The profile must
// belong to the trace.
void hide_behind_blocks(const Trace& trace, const Profile& profile, HostLink& link);

struct LinkPoint {
  Bytes bytes;
  std::chrono::nanoseconds median{};  // median time of the slowest rank
  bool operator==(const LinkPoint&) const = default;
};

// Points sorted by bytes. A curve has at least one point, and no two points have the same bytes.
using LinkCurve = std::vector<LinkPoint>;

// Returns the time for this number of bytes. Interpolates linearly between two points. Below the
// first point, returns the time of the first point. Above the last point, scales the time of the
// last point in proportion to the bytes.
std::chrono::nanoseconds time_at(const LinkCurve& curve, Bytes bytes);

// A group of ranks that communicate. `name` is the name of the group, such as "tp".
struct LinkGroup {
  std::string name;
  std::int64_t num_ranks = 1;
  // Times of collectives of float32 elements. LinkPoint::bytes is S in Note [Bytes of a
  // collective].
  std::map<CollectiveKind, LinkCurve> collectives;
  bool operator==(const LinkGroup&) const = default;
};

struct LinkProfile {
  std::string device;     // "cpu", "NVIDIA H100 80GB HBM3"
  std::string transport;  // "gloo", "nccl"
  std::string layout;     // "tp=2,fsdp=4"; empty: one rank
  std::int64_t world = 1;
  int num_steps = 0;  // number of steps over which the medians were taken
  std::optional<std::string> git_commit;
  std::optional<bool> git_dirty;
  std::vector<LinkGroup> groups;
  LinkCurve to_host;
  LinkCurve to_device;
  bool operator==(const LinkProfile&) const = default;
};

// Merges the profiles of all ranks: takes the slowest rank for each measurement. Throws
// std::invalid_argument if the ranks measured different collectives or sizes.
LinkProfile slowest_of(const std::vector<LinkProfile>& ranks);

bool has_collectives(const Trace& trace);

// Returns nullopt if the profile has the times of all collectives of the trace. Otherwise returns a
// one-line explanation.
std::optional<std::string> links_problem(const LinkProfile& links, const Trace& trace);

// Returns the measured time of a collective. Call it only if links_problem() returns nullopt.
std::chrono::nanoseconds measured_time(const LinkProfile& links,
                                       const TracedCollective& collective);

// Returns the host link with the rates of the largest copies that were measured. `source` is shown
// to the user.
HostLink host_link_of(const LinkProfile& links, const std::string& source);

// Returns for example "tp=2, measured on cpu over gloo".
std::string links_in_words(const LinkProfile& links);

// Converts link profiles to and from JSON, format "rematch.links/1.0", without loss.

Json links_to_json(const LinkProfile& links);

// Throws FormatError with the JSON path. Ignores unknown keys.
LinkProfile links_from_json(const Json& json);

}  // namespace rematch
