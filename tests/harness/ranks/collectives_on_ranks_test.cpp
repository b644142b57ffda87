// Tests functional collectives between real processes. Values must be correct, and every repetition
// must give the same bits.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <vector>

#include "harness/measure/memory.h"
#include "harness/ranks/collective_log.h"
#include "harness/ranks/ranks.h"
#include "tests/support/catch.h"
#include "tests/support/rank_processes.h"
#include "tests/support/slow_group.h"
#include "tests/support/step_meter.h"

namespace rematch::testing {
namespace {

constexpr const char* kGroup = "all";
constexpr int kRepeats = 20;

// Returns numbers that are different on each rank, and whose sum in float32 must be rounded.
at::Tensor numbers_of(int rank, std::int64_t rows) {
  return at::arange(rows * 3, at::kFloat).view({rows, 3}).mul(0.1).add(0.7 * rank).exp();
}

at::Tensor call(const char* name, const std::vector<c10::IValue>& arguments) {
  torch::jit::Stack stack(arguments.begin(), arguments.end());
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(&stack);
  return wait_for(stack.front().toTensor());
}

at::Tensor all_reduce(const at::Tensor& x) {
  return call("_c10d_functional::all_reduce", {x, "sum", kGroup});
}
at::Tensor all_gather(const at::Tensor& x, std::int64_t world) {
  return call("_c10d_functional::all_gather_into_tensor", {x, world, kGroup});
}
at::Tensor reduce_scatter(const at::Tensor& x, std::int64_t world) {
  return call("_c10d_functional::reduce_scatter_tensor", {x, "sum", world, kGroup});
}
at::Tensor all_to_all(const at::Tensor& x, const std::vector<std::int64_t>& out,
                      const std::vector<std::int64_t>& in) {
  return call("_c10d_functional::all_to_all_single", {x, out, in, kGroup});
}

TEST_CASE("rank: sums and scattered sums", "[.rank]") {
  const Ranks ranks = this_rank({group_of_all(kGroup)});
  const int world = ranks.world();
  const at::Tensor mine = numbers_of(ranks.rank(), world * 2);
  at::Tensor expected = at::zeros_like(mine);
  for (int rank = 0; rank < world; ++rank) expected += numbers_of(rank, world * 2);
  const at::Tensor sum = all_reduce(mine);
  CHECK(at::allclose(sum, expected, 1e-6));
  const at::Tensor part = reduce_scatter(mine, world);
  CHECK(part.equal(sum.slice(0, ranks.rank() * 2, ranks.rank() * 2 + 2)));
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    CHECK(all_reduce(mine).equal(sum));
    CHECK(reduce_scatter(mine, world).equal(part));
  }
}

TEST_CASE("sums over ranks are correct and bitwise repeatable") {
  for (const int world : {2, 4}) {
    CHECK(failure_of_ranks(world, "rank: sums and scattered sums") == "");
  }
}

TEST_CASE("rank: collectives that move rows between ranks", "[.rank]") {
  const Ranks ranks = this_rank({group_of_all(kGroup)});
  const int world = ranks.world();
  const at::Tensor mine = numbers_of(ranks.rank(), world);
  std::vector<at::Tensor> of_all;
  std::vector<at::Tensor> for_me;
  for (int rank = 0; rank < world; ++rank) {
    of_all.push_back(numbers_of(rank, world));
    for_me.push_back(of_all.back().slice(0, ranks.rank(), ranks.rank() + 1));
  }
  CHECK(all_gather(mine, world).equal(at::cat(of_all)));
  const std::vector<std::int64_t> one_each(static_cast<std::size_t>(world), 1);
  CHECK(all_to_all(mine, one_each, one_each).equal(at::cat(for_me)));
  CHECK(call("_c10d_functional::broadcast", {mine, 1, kGroup}).equal(of_all[1]));
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf, at::kLong}) {
    CHECK(all_gather(mine.to(type), world).equal(at::cat(of_all).to(type)));
  }
}

TEST_CASE("gathers, exchanges and broadcasts give each rank the right rows") {
  for (const int world : {2, 4}) {
    CHECK(failure_of_ranks(world, "rank: collectives that move rows between ranks") == "");
  }
}

// Rank 0 sends all its rows to rank 1. Rank 1 sends no rows.
TEST_CASE("rank: an uneven exchange", "[.rank]") {
  const Ranks ranks = this_rank({group_of_all(kGroup)});
  const at::Tensor mine = numbers_of(ranks.rank(), 3);
  if (ranks.rank() == 0) {
    CHECK(all_to_all(mine, {0, 0}, {0, 3}).numel() == 0);
  } else {
    CHECK(all_to_all(mine.slice(0, 0, 0), {3, 0}, {0, 0}).equal(numbers_of(0, 3)));
  }
}

TEST_CASE("an exchange may be uneven, and some ranks may send nothing") {
  CHECK(failure_of_ranks(2, "rank: an uneven exchange") == "");
}

// After a collective, Gloo's own threads would hold its tensors of 256 KiB, and a copy of them, for
// a while. The log must remember every storage without keeping it alive.
TEST_CASE("rank: bytes after a collective", "[.rank]") {
  install_counting_allocators();
  const Ranks ranks = this_rank({group_of_all(kGroup)});
  CollectiveLog log;
  const OpObserverGuard observe(&log);
  constexpr std::int64_t kRows = 1 << 16;
  const at::Tensor mine = at::ones({kRows});
  const std::int64_t before = cpu_bytes();
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const at::Tensor reduced = all_reduce(mine);
    CHECK(cpu_bytes() - before == kRows * 4);
    const at::Tensor part = reduce_scatter(mine, ranks.world());
    CHECK(cpu_bytes() - before == kRows * 4 + kRows * 4 / ranks.world());
    const at::Tensor gathered = all_gather(part, ranks.world());
    CHECK(cpu_bytes() - before == 2 * kRows * 4 + kRows * 4 / ranks.world());
  }
}

TEST_CASE("with a Gloo backend of kind kQuiet, only the result of a collective stays allocated") {
  CHECK(failure_of_ranks(2, "rank: bytes after a collective") == "");
}

TEST_CASE("rank: two groups with the same name", "[.rank]") {
  const int pair = this_place().rank / 2;
  const Ranks ranks = this_rank({group_of_all(kGroup), {"tp", {2 * pair, 2 * pair + 1}}});
  const at::Tensor mine = at::full({4}, static_cast<double>(1 + ranks.rank()));
  const at::Tensor of_pair = call("_c10d_functional::all_reduce", {mine, "sum", "tp"});
  CHECK(of_pair.equal(at::full({4}, pair == 0 ? 3.0 : 7.0)));
  CHECK(all_reduce(mine).equal(at::full({4}, 10.0)));
}

TEST_CASE("two groups with the same name but different ranks are separate") {
  CHECK(failure_of_ranks(4, "rank: two groups with the same name") == "");
}

// Rank 2 of 4 is simulated. The other ranks do not exist.
TEST_CASE(
    "collectives of a simulated rank return the real shapes, filled from the rank's own input") {
  const PretendedRanks ranks(2, {{kGroup, {0, 1, 2, 3}}});
  const at::Tensor mine = numbers_of(2, 4);
  CHECK(all_reduce(mine).equal(mine));
  CHECK(all_gather(mine, 4).equal(at::cat({mine, mine, mine, mine})));
  CHECK(reduce_scatter(mine, 4).equal(mine.slice(0, 0, 1)));
  CHECK(all_to_all(mine, {1, 1, 1, 1}, {1, 1, 1, 1}).equal(mine));
  CHECK(all_to_all(mine, {3, 2, 1, 0}, {1, 1, 1, 1}).equal(at::cat({mine, mine.slice(0, 0, 2)})));
  CHECK(all_to_all(mine.slice(0, 0, 0), {1, 0, 0, 0}, {0, 0, 0, 0}).isfinite().all().item<bool>());
}

}  // namespace
}  // namespace rematch::testing
