// How long collectives between ranks and copies to the host took, measured by bytes: what
// predictions take in place of the link in a device's data sheet. Its JSON is in links_json.h; who
// measures is harness/run/passes/link_pass.h. Knows nothing of what hides a collective.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/predict/device/host_link.h"
#include "policies/trace/collective.h"
#include "policies/trace/trace.h"

namespace rematch {

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

}  // namespace rematch
