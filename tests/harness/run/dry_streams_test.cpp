// Tests steps whose forward does not run on the default stream. Recompute must launch kernels on
// the stream on which forward launched them.
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <set>

#include "harness/dry_cuda/kernel_names.h"
#include "tests/harness/run/dry_points.h"

namespace rematch::testing {
namespace {

std::set<std::uint64_t> streams_of_kernels() {
  std::set<std::uint64_t> streams;
  for (const DryCudaRecord& record : dry_cuda::records()) {
    if (record.kind == DRY_CUDA_KERNEL) streams.insert(record.stream);
  }
  return streams;
}

TEST_CASE("a point on a second stream also recomputes on that stream", "[device]") {
  REMATCH_NEEDS_CUDA();
  const Point point = point_of("llama_small", kSmallLlama, "full");
  const PointRecord usual = run(point);
  const c10::cuda::CUDAStream second = c10::cuda::getStreamFromPool();
  const c10::cuda::CUDAStreamGuard guard(second);
  dry_cuda_reset();
  const PointRecord record = run(point);
  CAPTURE(record.reason);
  CHECK(record.status == PointStatus::kOk);
  CHECK(dry_cuda::launching_threads().size() == 2);
  CHECK(streams_of_kernels() ==
        std::set<std::uint64_t>{reinterpret_cast<std::uint64_t>(second.stream())});
  REQUIRE(record.kernels.has_value());
  CHECK(record.kernels->invalid == "");
  CHECK(record.kernels->count == usual.kernels->count);
  CHECK(record.counts->by_op == usual.counts->by_op);
}

TEST_CASE("backward requested on another stream recomputes on forward's stream", "[device]") {
  REMATCH_NEEDS_CUDA();
  const Point point = point_of("llama_small", kSmallLlama, "full");
  TrainingSettings settings;
  settings.model = point.settings.request.model;
  settings.device = c10::Device(c10::kCUDA, 0);
  Training training(settings);
  training.use_plan(point.variant.plan, point.variant.identity.schedule);
  StepListener nobody;
  training.step(0, nobody);

  // Runs only forward on the second stream.
  struct SecondStream final : StepListener {
    at::Tensor forward(const std::function<at::Tensor()>& loss) override {
      const c10::cuda::CUDAStreamGuard guard(second);
      return loss();
    }
    void after_forward(const at::Tensor&) override { dry_cuda_reset(); }
    void after_backward() override {
      attention_forwards = dry_cuda::num_kernels("fmha_cutlassF");
      for (const DryCudaRecord& record : dry_cuda::records()) {
        const bool is_attention =
            std::string_view(record.name).find("fmha_cutlassF") != std::string_view::npos;
        if (is_attention) streams.insert(record.stream);
      }
    }
    c10::cuda::CUDAStream second = c10::cuda::getStreamFromPool();
    std::int64_t attention_forwards = 0;
    std::set<std::uint64_t> streams;
  } listener;
  training.step(1, listener);
  CHECK(listener.attention_forwards == 2);  // recomputed attention of two layers
  CHECK(listener.streams ==
        std::set<std::uint64_t>{reinterpret_cast<std::uint64_t>(listener.second.stream())});
}

}  // namespace
}  // namespace rematch::testing
