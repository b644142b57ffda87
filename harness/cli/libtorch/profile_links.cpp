#include "harness/cli/libtorch/profile_links.h"

#include <chrono>
#include <utility>
#include <vector>

#include "harness/cli/files/output.h"
#include "harness/cli/libtorch/rank_commands.h"
#include "harness/cli/libtorch/run_setup.h"
#include "harness/measure/source_state.h"
#include "harness/process/interrupt.h"
#include "harness/run/children/rank_processes.h"
#include "harness/run/passes/link_pass.h"
#include "models/preset/parallel.h"
#include "policies/base/file.h"
#include "policies/base/format.h"
#include "policies/base/json.h"
#include "policies/predict/device/collective_time.h"
#include "policies/predict/device/links.h"

namespace rematch {
namespace {

constexpr std::chrono::minutes kLinksLimit{10};

std::string rate_in_words(Bytes bytes, std::chrono::nanoseconds time) {
  const double rate = static_cast<double>(bytes.count) / static_cast<double>(time.count());
  return format_fixed(rate, 2) + " GB/s";  // bytes per nanosecond equal GB/s
}

// Returns a text such as "32.1 us for 1.00 KiB, 64.0 MiB at 1.93 GB/s".
std::string ends_in_words(const LinkCurve& curve, Bytes sent_at_most) {
  const LinkPoint& least = curve.front();
  const LinkPoint& most = curve.back();
  return format_duration(least.median) + " for " + format_bytes(least.bytes) + ", " +
         format_bytes(most.bytes) + " at " + rate_in_words(sent_at_most, most.median);
}

void say_links(const LinkProfile& links) {
  say("links of " + links_in_words(links) + "; medians over " + std::to_string(links.num_steps) +
      " calls on the slowest rank");
  for (const LinkGroup& group : links.groups) {
    for (const auto& [kind, curve] : group.collectives) {
      const Bytes sent = sent_bytes(kind, curve.back().bytes, group.num_ranks);
      say(group.name + ", " + std::to_string(group.num_ranks) + " ranks, " +
          std::string(to_string(kind)) + ": " + ends_in_words(curve, sent) + " sent by a rank");
    }
  }
  for (const auto& [name, curve] :
       {std::pair("to the host", &links.to_host), std::pair("to the device", &links.to_device)}) {
    say(std::string("copies ") + name + ": " + ends_in_words(*curve, curve->back().bytes));
  }
}

ExitCode measure(const LinksRequest& request, const std::string& output, RankProcesses& ranks) {
  const RanksOutcome outcome = ranks.run(links_request_to_json(request).dump(), kLinksLimit);
  if (outcome.end == LaunchResult::End::kInterrupted) {
    throw Interrupted(InterruptGuard::signal().value_or(0));
  }
  if (outcome.end != LaunchResult::End::kWell) {
    return end_with(ExitCode::kSomePointsFailed, "links were not measured: " + outcome.message);
  }
  std::vector<LinkProfile> of_ranks;
  for (const std::string& result : outcome.results) {
    of_ranks.push_back(links_from_json(parse_json(result, "a rank's result")));
  }
  LinkProfile links = slowest_of(of_ranks);
  note_source_state(links);
  say_links(links);
  write_output(output, links_to_json(links));
  return ExitCode::kOk;
}

}  // namespace

ExitCode profile_links(const std::map<std::string, std::int64_t>& layout, const std::string& device,
                       int num_steps, const OutputRequest& output) {
  const auto world = static_cast<int>(world_size(layout));
  if (world > kMaxWorld) {
    throw UsageError("--parallel " + layout_text(layout) + " has " + std::to_string(world) +
                     " ranks; the limit is " + std::to_string(kMaxWorld));
  }
  prepare_children();
  const LinksRequest request{layout, device, num_steps};
  return work_on_ranks(place_among_commands(world), [&](RankProcesses* ranks) {
    const OutputFile file(output);
    const InterruptGuard interrupts;
    if (ranks != nullptr) return measure(request, output.file, *ranks);
    SpawnedRanks spawned(world);
    return measure(request, output.file, spawned);
  });
}

}  // namespace rematch
