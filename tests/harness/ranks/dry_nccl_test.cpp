// Tests ranks that use c10d's own NCCL backend. Each rank is a process with its own dry card. A
// stand-in for NCCL records which kernels are launched, on which card and stream. It moves no data,
// so only values that Gloo transfers are checked.
#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/cuda/CUDAStream.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

#include "harness/dry_cuda/kernel_names.h"
#include "harness/ranks/backends.h"
#include "kernels/collectives/collectives.h"
#include "tests/harness/ranks/noted_calls.h"
#include "tests/support/catch.h"
#include "tests/support/rank_processes.h"

namespace rematch::testing {
namespace {

using Transport = RanksOptions::Transport;

// Sets the variable before the device is first used, also in the processes of the ranks.
const bool kTwoCards = setenv("DRY_CUDA_DEVICES", "2", 1) == 0;

at::TensorOptions on_card() { return at::TensorOptions().device(at::kCUDA); }

std::vector<std::string> collective_kernels() {
  std::vector<std::string> names;
  for (const DryCudaRecord& record : dry_cuda::records()) {
    if (std::string_view(record.name).starts_with("nccl")) names.emplace_back(record.name);
  }
  return names;
}

// A collective over several tensors must be one kernel. An exchange must also be one kernel, even
// if its parts are unequal.
TEST_CASE("rank: collectives on cards are NCCL's kernels", "[.rank]") {
  const Ranks ranks = this_rank({group_of_all("tp")}, Transport::kNccl);
  const at::Tensor x = at::empty({64, 32}, on_card());
  CHECK(x.device().index() == ranks.rank());
  dry_cuda_reset();
  collectives::all_reduce(x, "tp");
  collectives::all_gather(x, 2, "tp");
  collectives::reduce_scatter(x, 2, "tp");
  collectives::all_to_all(x, {32, 32}, {32, 32}, "tp");
  collectives::all_to_all(x, {30, 10}, {40, 24}, "tp");
  collectives::all_gather(std::vector<at::Tensor>{x, x}, 2, "tp");
  collectives::reduce_scatter(std::vector<at::Tensor>{x, x}, collectives::Reduction::kMean, 2,
                              "tp");
  collectives::all_reduce_in_place({x, at::empty_like(x)}, collectives::Reduction::kSum, "tp");
  CHECK(collective_kernels() ==
        std::vector<std::string>{
            "ncclDevKernel_AllReduce_Sum_f32_n2048_r2", "ncclDevKernel_AllGather_f32_n2048_r2",
            "ncclDevKernel_ReduceScatter_Sum_f32_n2048_r2", "ncclDevKernel_SendRecv_f32_n2048_r2",
            "ncclDevKernel_SendRecv_f32_n2048_r2", "ncclDevKernel_AllGather_f32_n4096_r2",
            "ncclDevKernel_ReduceScatter_Avg_f32_n4096_r2",
            "ncclDevKernel_AllReduce_Sum_f32_n4096_r2"});
}

TEST_CASE("rank: NCCL uses its card and stream", "[.rank]") {
  const Ranks ranks = this_rank({group_of_all("tp")}, Transport::kNccl);
  const at::Tensor x = at::empty({8}, on_card());
  dry_cuda_reset();
  collectives::all_reduce(x, "tp");
  const auto compute = reinterpret_cast<std::uint64_t>(c10::cuda::getCurrentCUDAStream().stream());
  std::size_t num_kernels = 0;
  for (const DryCudaRecord& record : dry_cuda::records()) {
    CHECK(record.device == ranks.rank());
    if (record.kind != DRY_CUDA_KERNEL) continue;
    CHECK(record.stream != compute);
    ++num_kernels;
  }
  CHECK(num_kernels == 1);
  const at::Tensor beside = at::full({1}, ranks.rank() + 1.0);
  CHECK(collectives::all_reduce(beside, "tp").item<float>() == 3.0F);
}

// Runs only rank 0 of two, because the stand-in for NCCL needs no other rank.
TEST_CASE("NCCL's backend records each variant of each collective once", "[device]") {
  const NotesOnBoard notes;
  GroupPlace place;
  place.name = "tp";
  place.size = 2;
  place.store = c10::make_intrusive<c10d::HashStore>();
  place.timeout = std::chrono::seconds(60);
  place.notes = notes.of_rank;
  const c10::intrusive_ptr<c10d::Backend> backend = make_nccl_backend(place);
  std::int64_t begun = 0;
  for (const auto& [name, call] : every_collective(on_card())) {
    call(*backend);
    CAPTURE(name);
    CHECK(notes.calls() == ++begun);
  }
  backend->shutdown();
}

TEST_CASE("rank: of three", "[.rank]") {
  const Ranks ranks = this_rank({group_of_all("tp")}, Transport::kNccl);
}

TEST_CASE("each collective launches NCCL's kernel", "[device]") {
  CHECK(failure_of_ranks(2, "rank: collectives on cards are NCCL's kernels") == "");
}

TEST_CASE("NCCL uses the rank's card and its own stream, and Gloo still works", "[device]") {
  CHECK(failure_of_ranks(2, "rank: NCCL uses its card and stream") == "");
}

TEST_CASE("the error for more ranks than cards gives both counts", "[device]") {
  CHECK_THAT(failure_of_ranks(3, "rank: of three"),
             Catch::Contains("local rank 2 needs its own GPU, but 2 are visible here"));
}

}  // namespace
}  // namespace rematch::testing
