// A made-up link profile for tests.
#pragma once

#include "policies/predict/device/links.h"

namespace rematch::testing {

// Two ranks of "tp" on the CPU. All kinds of collectives cost the same: 10 us up to 1 KiB, and one
// nanosecond for each further byte. Copies of 64 KiB run at 2 GB/s to the host and at 4 GB/s back.
inline LinkProfile made_up_links() {
  using std::chrono::nanoseconds;
  LinkProfile links;
  links.device = "cpu";
  links.transport = "gloo";
  links.layout = "tp=2";
  links.world = 2;
  links.num_steps = 10;
  links.git_commit = "0123456789abcdef0123456789abcdef01234567";
  links.git_dirty = false;
  LinkGroup group{"tp", 2, {}};
  const LinkCurve curve = {{Bytes{1024}, nanoseconds(10'000)},
                           {Bytes{4096}, nanoseconds(13'072)},
                           {Bytes{65536}, nanoseconds(74'512)}};
  for (const CollectiveKind kind : kAll<CollectiveKind>) group.collectives[kind] = curve;
  links.groups = {group};
  links.to_host = {{Bytes{1024}, nanoseconds(1000)}, {Bytes{65536}, nanoseconds(32'768)}};
  links.to_device = {{Bytes{1024}, nanoseconds(1000)}, {Bytes{65536}, nanoseconds(16'384)}};
  return links;
}

}  // namespace rematch::testing
