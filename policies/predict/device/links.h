// How long collectives between ranks and copies to the host took, measured by bytes: what
// predictions take in place of the link in a device's data sheet. harness/run/passes/link_pass.h
// measures them. Knows nothing of what hides a collective.
#pragma once

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
#include "policies/trace/trace.h"

namespace rematch {

// The link between a device and the host's memory, as far as a prediction needs to know it: bytes a
// second in each direction. Knows nothing of what hides a copy.

struct HostLink {
  double to_host_bytes_per_second = 0;
  double to_device_bytes_per_second = 0;
  std::string source;  // "--link-rate 50GB/s", "data sheet of h100"

  // How long copies take with nothing beside them.
  std::chrono::nanoseconds time_of(Bytes out, Bytes back) const {
    constexpr double kNanosecondsInSecond = 1e9;
    const double seconds = static_cast<double>(out.count) / to_host_bytes_per_second +
                           static_cast<double>(back.count) / to_device_bytes_per_second;
    return std::chrono::nanoseconds(std::llround(seconds * kNanosecondsInSecond));
  }
};

struct LinkPoint {
  Bytes bytes;
  std::chrono::nanoseconds median{};  // of the slowest rank
  bool operator==(const LinkPoint&) const = default;
};

// By bytes, each more than the one before; at least one.
using LinkCurve = std::vector<LinkPoint>;

// Between two points the time is on the line through them; below the first it is the first's, above
// the last it grows with the bytes. Monotone wherever the points are.
std::chrono::nanoseconds time_at(const LinkCurve& curve, Bytes bytes);

// The ranks that talk to each other under one name: "tp".
struct LinkGroup {
  std::string name;
  std::int64_t num_ranks = 1;
  // By S, the whole: see Note [Bytes of a collective]. Of float32 elements.
  std::map<CollectiveKind, LinkCurve> collectives;
  bool operator==(const LinkGroup&) const = default;
};

struct LinkProfile {
  std::string device;     // "cpu", "NVIDIA H100 80GB HBM3"
  std::string transport;  // "gloo", "nccl"
  std::string layout;     // "tp=2,fsdp=4"; empty: one rank
  std::int64_t world = 1;
  int num_steps = 0;  // that medians are over
  std::optional<std::string> git_commit;
  std::optional<bool> git_dirty;
  std::vector<LinkGroup> groups;
  LinkCurve to_host;
  LinkCurve to_device;
  bool operator==(const LinkProfile&) const = default;
};

// The ranks' measurements of the same calls, each call by its slowest rank. Throws
// std::invalid_argument if they did not measure the same.
LinkProfile slowest_of(const std::vector<LinkProfile>& ranks);

bool has_collectives(const Trace& trace);

// Why the profile does not have the times of the trace's collectives, in one line; nothing if it
// does.
std::optional<std::string> links_problem(const LinkProfile& links, const Trace& trace);

// The time of a collective that links_problem() finds nothing wrong with.
std::chrono::nanoseconds measured_time(const LinkProfile& links,
                                       const TracedCollective& collective);

// The link by the largest copies that were measured; `source` is for people.
HostLink host_link_of(const LinkProfile& links, const std::string& source);

// "tp=2 measured on cpu over gloo"
std::string links_in_words(const LinkProfile& links);

// Link profiles as files, "rematch.links/1.0". Lossless.

Json links_to_json(const LinkProfile& links);

// Throws FormatError with the JSON path. Ignores unknown keys.
LinkProfile links_from_json(const Json& json);

}  // namespace rematch
