// Measured times of collectives between ranks and of copies to the host, as functions of the bytes.
// Predictions use these times instead of the link rate in a device's data sheet.
// harness/run/passes/link_pass.h measures them.
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
// Note [What hides a copy] Copies run in parallel with compute, on their own stream. A region's
// values must be on the host when the next region of the plan ends. The copy back starts in
// backward of that next region, and must be complete when backward reaches the region (Note
// [Lifetime of stored values], policies/plan/treatment.h). In a searched plan, that next region is
// at least one block. A copy to the host is therefore hidden for as long as forward of the step's
// fastest block takes, and a copy to the device for as long as backward of this block takes. The
// step waits for the rest of the copy. Recompute would hide more, and regions inside a block would
// hide less. Both are ignored, and so is the device memory bandwidth that copies take from compute.
struct HostLink {
  double to_host_bytes_per_second = 0;
  double to_device_bytes_per_second = 0;
  std::string source;  // "--link-rate 50GB/s", "data sheet of h100"
  // time for which compute hides one region's copies to the host
  std::chrono::nanoseconds hidden_out{};
  // time for which compute hides one region's copies to the device
  std::chrono::nanoseconds hidden_back{};

  // These functions return the time that the step waits for the copies of one region.
  std::chrono::nanoseconds wait_out(Bytes bytes) const {
    return beyond(hidden_out, bytes, to_host_bytes_per_second);
  }
  std::chrono::nanoseconds wait_back(Bytes bytes) const {
    return beyond(hidden_back, bytes, to_device_bytes_per_second);
  }

 private:
  static std::chrono::nanoseconds beyond(std::chrono::nanoseconds hidden, Bytes bytes,
                                         double bytes_per_second) {
    constexpr double kNanosecondsInSecond = 1e9;
    const std::chrono::nanoseconds copy(
        std::llround(static_cast<double>(bytes.count) / bytes_per_second * kNanosecondsInSecond));
    return std::max(copy - hidden, std::chrono::nanoseconds{});
  }
};

// Sets the time for which blocks hide copies: see Note [What hides a copy]. The profile must belong
// to the trace.
void hide_behind_blocks(const Trace& trace, const Profile& profile, HostLink& link);

struct LinkPoint {
  Bytes bytes;
  std::chrono::nanoseconds median{};  // time of the slowest rank
  bool operator==(const LinkPoint&) const = default;
};

// Measured times by bytes. A curve has at least one point, and its bytes are strictly ascending.
using LinkCurve = std::vector<LinkPoint>;

// Returns the time for this number of bytes. Interpolates linearly between two points. Below the
// first point, returns the time of the first point. Above the last point, scales the time of the
// last point with the bytes.
std::chrono::nanoseconds time_at(const LinkCurve& curve, Bytes bytes);

// A group of ranks that communicate. `name` is the name of the group, such as "tp".
struct LinkGroup {
  std::string name;
  std::int64_t num_ranks = 1;
  // Times of collectives of float32 elements. The bytes of a point are S in Note [Bytes of a
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

// Combines the ranks' measurements of the same calls, taking the slowest rank for each call. Throws
// std::invalid_argument if the ranks measured different calls.
LinkProfile slowest_of(const std::vector<LinkProfile>& ranks);

bool has_collectives(const Trace& trace);

// Returns nullopt if the profile has the times of all collectives of the trace. Otherwise explains
// in one line why it lacks them.
std::optional<std::string> links_problem(const LinkProfile& links, const Trace& trace);

// Returns the measured time of a collective. Call it only if links_problem() returns nullopt.
std::chrono::nanoseconds measured_time(const LinkProfile& links,
                                       const TracedCollective& collective);

// Returns the link rates at the largest measured copies. `source` is a text for people.
HostLink host_link_of(const LinkProfile& links, const std::string& source);

// Returns for example "tp=2, measured on cpu over gloo".
std::string links_in_words(const LinkProfile& links);

// Reads and writes link profiles as files, "rematch.links/1.0". Reading a written file restores the
// profile completely.

Json links_to_json(const LinkProfile& links);

// Throws FormatError with the JSON path. Ignores unknown keys.
LinkProfile links_from_json(const Json& json);

}  // namespace rematch
