#include "harness/run/passes/link_pass.h"

#include <ATen/ops/zeros.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "harness/engine/stores/mover.h"
#include "harness/measure/clocks.h"
#include "harness/measure/cuda_device.h"
#include "harness/process/process.h"
#include "harness/ranks/place.h"
#include "harness/ranks/ranks.h"
#include "harness/run/children/job.h"
#include "harness/training/device.h"
#include "kernels/collectives/collectives.h"
#include "models/preset/parallel.h"
#include "policies/base/json.h"
#include "reports/statistics/statistics.h"

namespace rematch {
namespace {

constexpr const char* kLayoutKey = "links_of_layout";
constexpr Bytes kMinOnLink{1024};
// Measurements up to this size take seconds on a CPU. The time of a larger collective is
// extrapolated linearly.
constexpr Bytes kMaxOnLink{64 << 20};
constexpr std::int64_t kLinkGrowth = 4;
constexpr int kWarmUpCalls = 2;
constexpr std::int64_t kElementBytes = 4;  // float32

// The device whose links are measured, and the number of samples.
struct Bench {
  c10::Device device;
  int num_steps;

  // Returns the median time of a call. The device is idle before and after each call.
  std::chrono::nanoseconds time(const std::function<void()>& call) const {
    std::vector<double> samples;
    for (int step = 0; step < kWarmUpCalls + num_steps; ++step) {
      const auto start = now_on(device);
      call();
      const std::chrono::nanoseconds took = now_on(device) - start;
      if (step >= kWarmUpCalls) samples.push_back(static_cast<double>(took.count()));
    }
    return std::max(
        std::chrono::nanoseconds(1),
        std::chrono::nanoseconds(static_cast<std::int64_t>(median(std::move(samples)))));
  }
};

// The two tensors of a collective: a whole tensor, and one rank's part of it.
struct Sides {
  at::Tensor whole;
  at::Tensor part;
};

void run_collective(CollectiveKind kind, const Sides& sides, const RankGroup& group) {
  const auto size = static_cast<std::int64_t>(group.ranks.size());
  const std::vector<std::int64_t> rows(group.ranks.size(), sides.part.size(0));
  switch (kind) {
    case CollectiveKind::kAllReduce:
      collectives::all_reduce(sides.whole, group.name);
      return;
    case CollectiveKind::kAllGather:
      collectives::all_gather(sides.part, size, group.name);
      return;
    case CollectiveKind::kReduceScatter:
      collectives::reduce_scatter(sides.whole, size, group.name);
      return;
    case CollectiveKind::kAllToAll:
      collectives::all_to_all(sides.whole, rows, rows, group.name);
      return;
    case CollectiveKind::kBroadcast:
      collectives::broadcast(sides.whole, /*root=*/0, group.name);
      return;
  }
}

// Measures a collective over a range of sizes. Rounds each size so that it is divisible by the
// number of ranks.
LinkCurve collective_curve(const Bench& bench, CollectiveKind kind, const RankGroup& group) {
  const auto size = static_cast<std::int64_t>(group.ranks.size());
  const auto options = at::TensorOptions().dtype(at::kFloat).device(bench.device);
  LinkCurve curve;
  for (std::int64_t bytes = kMinOnLink.count; bytes <= kMaxOnLink.count; bytes *= kLinkGrowth) {
    const std::int64_t of_part = std::max<std::int64_t>(1, bytes / kElementBytes / size);
    const Sides sides{at::zeros({of_part * size}, options), at::zeros({of_part}, options)};
    const Bytes whole{of_part * size * kElementBytes};
    if (!curve.empty() && curve.back().bytes >= whole)
      continue;  // rounding produced a size that is already measured
    curve.push_back({whole, bench.time([&] { run_collective(kind, sides, group); })});
  }
  return curve;
}

LinkGroup measure_group(const Bench& bench, const RankGroup& group) {
  LinkGroup measured{group.name, static_cast<std::int64_t>(group.ranks.size()), {}};
  for (const CollectiveKind kind : kAll<CollectiveKind>) {
    measured.collectives[kind] = collective_curve(bench, kind, group);
  }
  return measured;
}

// Measures copies as the engine makes them. On the CPU, a second block of memory acts as the host.
void measure_copies(const Bench& bench, LinkProfile& links) {
  const std::unique_ptr<Mover> mover = make_mover(bench.device);
  const auto options = at::TensorOptions().dtype(at::kByte).device(bench.device);
  for (std::int64_t bytes = kMinOnLink.count; bytes <= kMaxOnLink.count; bytes *= kLinkGrowth) {
    const at::Tensor tensor = at::zeros({bytes}, options);
    const auto num_bytes = static_cast<std::size_t>(bytes);
    const std::unique_ptr<void, std::function<void(void*)>> host(
        mover->allocate(num_bytes), [&](void* block) { mover->free(block); });
    const auto out = bench.time([&] {
      mover->copy_out(host.get(), tensor.const_data_ptr(), num_bytes);
      mover->wait(mover->mark());
    });
    const auto back = bench.time([&] {
      mover->copy_back(tensor.mutable_data_ptr(), host.get(), num_bytes);
      mover->wait(mover->mark());
    });
    links.to_host.push_back({Bytes{bytes}, out});
    links.to_device.push_back({Bytes{bytes}, back});
  }
}

std::string name_of(c10::Device device) {
  if (!device.is_cuda()) return c10::DeviceTypeName(device.type(), /*lower_case=*/true);
  const auto card = cuda_device(device.index());
  return card ? card->name : "cuda";
}

}  // namespace

Json links_request_to_json(const LinksRequest& request) {
  return {
      {kLayoutKey, request.layout}, {"device", request.device}, {"num_steps", request.num_steps}};
}

bool is_links_request(const Json& json) { return json.contains(kLayoutKey); }

LinksRequest links_request_from_json(const Json& json) {
  const JsonField root(json);
  LinksRequest request;
  for (const auto& [option, size] : root.at(kLayoutKey).members()) {
    request.layout[*option] = size.integer(0, kMaxWorld);
  }
  request.device = root.at("device").string();
  request.num_steps = root.at("num_steps").integer32(1);
  return request;
}

LinkProfile measure_links(const LinksRequest& request) {
  const RankPlace place = rank_place_from_environment().value_or(RankPlace{});
  ModelSpec spec;
  spec.dimensions = request.layout;
  spec.rank = place.rank;
  Bench bench{device_named(request.device), request.num_steps};
  const std::unique_ptr<Ranks> ranks = join_ranks(place, spec, bench.device);
  ranks->agree("program", own_executable_sha256());
  LinkProfile links;
  links.device = name_of(bench.device);
  links.transport = bench.device.is_cuda() ? "nccl" : "gloo";
  links.layout = layout_text(request.layout);
  links.world = place.world;
  links.num_steps = request.num_steps;
  for (const RankGroup& group : rank_groups(spec)) {
    ranks->barrier(group.name);
    links.groups.push_back(measure_group(bench, group));
  }
  ranks->barrier("copies");
  measure_copies(bench, links);
  return links;
}

}  // namespace rematch
