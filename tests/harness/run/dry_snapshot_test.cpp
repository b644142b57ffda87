// Reads the allocator's snapshot of a point with plain Python, and checks what PyTorch's viewer
// would show.
#include <cstdio>
#include <memory>

#include "harness/dry_cuda/dry_cuda.h"
#include "policies/base/json.h"
#include "tests/harness/run/dry_points.h"
#include "tests/support/in_tree.h"
#include "tests/support/scratch_folder.h"

namespace rematch::testing {
namespace {

// Runs tests/support/read_snapshot.py on the file, and returns its output.
Json read_snapshot(const std::string& file) {
  const std::string command = "python3 " + in_tree("tests/support/read_snapshot.py") + " " + file;
  const std::unique_ptr<FILE, int (*)(FILE*)> output(popen(command.c_str(), "r"), pclose);
  std::string text;
  for (int letter = std::fgetc(output.get()); letter != EOF; letter = std::fgetc(output.get())) {
    text += static_cast<char>(letter);
  }
  return Json::parse(text);
}

PointRecord run_with_snapshot(const Point& point, const std::string& file) {
  PointRequest request = request_for(point.settings, point.variant, Pass::kExact, 1);
  request.snapshot_file = file;
  return run_passes(request);
}

// After a step, the allocator must hold the bytes that the memory pass counts between steps, minus
// the bytes of the batch. The batch is two tensors of 64-bit token ids.
TEST_CASE("a snapshot is plain Python data, and its bytes equal the counted bytes", "[device]") {
  REMATCH_NEEDS_CUDA();
  const ScratchFolder scratch;
  const PointRecord record =
      run_with_snapshot(point_of("llama_small", kSmallLlama, "full"), scratch.file("full.pickle"));
  REQUIRE(record.status == PointStatus::kOk);
  const Json snapshot = read_snapshot(scratch.file("full.pickle"));
  CHECK(snapshot["keys"].dump().find("\"device_traces\"") != std::string::npos);
  CHECK(snapshot["keys"].dump().find("\"segments\"") != std::string::npos);
  const auto& dimensions = record.identity.dimensions;
  const std::int64_t batch_bytes = 2 * dimensions.at("batch") * dimensions.at("tokens") * 8;
  CHECK(snapshot["active_bytes"] == record.memory->baseline->count - batch_bytes);
  CHECK(snapshot["grown_requested_bytes"] == 0);
  CHECK(snapshot["num_allocations"] > 0);
}

TEST_CASE("events of a snapshot are named after the requesting op, including in recompute",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  const ScratchFolder scratch;
  run_with_snapshot(point_of("llama_small", kSmallLlama, "full"), scratch.file("full.pickle"));
  const Json snapshot = read_snapshot(scratch.file("full.pickle"));
  const std::string names = snapshot["names"].dump();
  for (const char* name :
       {"forward blocks.0 aten::mm", "recompute blocks.0 aten::mm", "backward blocks.0 aten::mm"}) {
    CAPTURE(name);
    CHECK(names.find(name) != std::string::npos);
  }
  CHECK(snapshot["num_named"] > snapshot["num_allocations"].get<int>() * 9 / 10);
}

TEST_CASE("a point that runs out of memory leaves a snapshot of the allocations before the failure",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  const ScratchFolder scratch;
  constexpr int kMemoryAllocation = 2;  // cudaErrorMemoryAllocation
  dry_cuda_plant_failure("cudaLaunchKernel", 100, kMemoryAllocation);
  const PointRecord record =
      run_with_snapshot(point_of("llama_small", kSmallLlama, "full"), scratch.file("oom.pickle"));
  REQUIRE(record.status == PointStatus::kOom);
  CHECK(read_snapshot(scratch.file("oom.pickle"))["num_allocations"] > 0);
}

}  // namespace
}  // namespace rematch::testing
