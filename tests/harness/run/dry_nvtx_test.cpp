// Checks the NVTX ranges of counted steps, as Nsight Systems would show them: ranges of phases,
// regions and ops, on the threads that launch kernels.
#include <map>
#include <set>

#include "tests/harness/run/dry_points.h"
#include "tests/support/nvtx_tool.h"

namespace rematch::testing {
namespace {

// An NVTX range. `inside` names the enclosing range on the same thread, and `phase` the enclosing
// phase.
struct Opened {
  std::string name;
  std::string inside;
  std::string phase;
  std::thread::id thread;
};

// Requires that ranges nest correctly on each thread, and that all of them end.
std::vector<Opened> opened_ranges(const std::vector<NvtxEvent>& events) {
  std::vector<Opened> opened;
  std::map<std::thread::id, std::vector<std::string>> open;
  std::map<std::uint64_t, std::string> phases;
  for (const NvtxEvent& event : events) {
    std::vector<std::string>& stack = open[event.thread];
    switch (event.kind) {
      case NvtxEvent::Kind::kPush:
        REQUIRE(phases.size() <= 1);
        opened.push_back({event.name, stack.empty() ? "" : stack.back(),
                          phases.empty() ? "" : phases.begin()->second, event.thread});
        stack.push_back(event.name);
        break;
      case NvtxEvent::Kind::kPop:
        REQUIRE_FALSE(stack.empty());
        stack.pop_back();
        break;
      case NvtxEvent::Kind::kStart:
        phases[event.range] = event.name;
        break;
      case NvtxEvent::Kind::kEnd:
        REQUIRE(phases.erase(event.range) == 1);
    }
  }
  CHECK(phases.empty());
  for (const auto& [thread, stack] : open) CHECK(stack.empty());
  return opened;
}

std::int64_t total(const std::map<std::string, std::int64_t>& counts) {
  std::int64_t sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

// On a GPU, autograd runs backward and recompute on a thread of its own.
TEST_CASE(
    "autograd's thread opens a range for every recomputed op, inside the ranges of its region and "
    "of backward",
    "[device]") {
  REMATCH_NEEDS_CUDA();
  const std::thread::id caller = std::this_thread::get_id();
  for (const auto& [policy, region] : std::vector<std::pair<std::string, std::string>>{
           {"full", "blocks.1"}, {"none", ""}, {"nth_last(2)", "blocks.1"}}) {
    CAPTURE(policy);
    take_nvtx_events();
    const PointRecord record = run(point_of("llama_small", kSmallLlama, policy));
    REQUIRE(record.kernels.has_value());
    std::int64_t recomputed = 0;
    std::set<std::string> regions;
    for (const Opened& range : opened_ranges(take_nvtx_events())) {
      CAPTURE(range.name, range.inside, range.phase);
      if (range.name == "batch") continue;
      const bool in_backward =
          range.name.starts_with("backward") || range.name.starts_with("recompute");
      const std::string phase = range.name.substr(0, range.name.find(' '));
      REQUIRE(range.phase == (in_backward ? "backward" : phase));
      if (range.name.find(" region ") != std::string::npos) {
        REQUIRE(range.inside == "");
        regions.insert(range.name);
      } else if (phase == "recompute") {
        ++recomputed;
        REQUIRE(range.thread != caller);
        // For example, range "recompute blocks.1 aten::mm" is inside range "recompute region
        // blocks.1".
        const std::string place = range.name.substr(0, range.name.rfind(' '));
        REQUIRE(range.inside == "recompute region" + place.substr(phase.size()));
      }
    }
    constexpr auto kRecompute = static_cast<std::size_t>(Phase::kRecompute);
    CHECK(recomputed == total(record.counts->by_op[kRecompute]));
    CHECK(regions.contains("recompute region " + region) == !region.empty());
    CHECK(regions.contains("forward region " + region) == !region.empty());
  }
}

}  // namespace
}  // namespace rematch::testing
