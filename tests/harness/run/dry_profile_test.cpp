// Tests the passes of a profile on the dry device. Its times mean nothing, but launches and
// temporaries of kernels are real.
#include "harness/measure/memory.h"
#include "harness/profile/device_profile.h"
#include "harness/profile/step_ops.h"
#include "harness/run/prediction/prediction.h"
#include "kernels/attention/backend.h"
#include "tests/harness/run/dry_points.h"

namespace rematch::testing {
namespace {

// Returns the largest temporary of all ops with this name, or nothing if no op has this name.
std::optional<Bytes> most_of(const std::string& name, const std::vector<const std::string*>& names,
                             const std::vector<Bytes>& temporaries) {
  std::optional<Bytes> most;
  REQUIRE(names.size() == temporaries.size());
  for (std::size_t index = 0; index < names.size(); ++index) {
    if (*names[index] != name) continue;
    most = std::max(most.value_or(Bytes{}), temporaries[index]);
  }
  return most;
}

// The backward of flash attention sums dq in float32, in a tensor that is padded to 128 tokens and
// 64 columns, although a head has only 32. It also allocates one float32 for each row of each head.
TEST_CASE("a profile includes the workspace of kernels, and counts each op's launches",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  TrainingSettings settings;
  settings.model = std::get<ModelSpec>(make_spec(
      "llama_small",
      {{"layers", 2}, {"dim", 128}, {"heads", 4}, {"kv_heads", 4}, {"tokens", 100}, {"batch", 2}}));
  settings.model.dtype = "bfloat16";
  settings.device = c10::Device(c10::kCUDA, 0);
  settings.determinism = Determinism::kFastest;
  use_attention_backend(AttentionBackend::kFlash);
  install_counting_allocators();
  const Trace trace = MetaModel(settings.model, {}, "", 0).trace();
  const Profile profile = profile_on_device(trace, settings, /*num_steps=*/2);
  CHECK(profile.device == "cuda");
  CHECK(profile.card == cuda_device()->name);
  CHECK(profile.attention_backend == "flash");
  CHECK(profile.repeatable_bits == false);
  REQUIRE(profile.forward_temporary.has_value());
  REQUIRE(profile.backward_temporary.has_value());
  const auto forward = forward_names(trace);
  const auto backward = backward_names(trace);
  CHECK(most_of("aten::mul.Tensor", forward, *profile.forward_temporary) == Bytes{0});
  constexpr std::int64_t kRows = 2 * 4 * 128;
  CHECK(most_of("rematch::attention_backward", backward, *profile.backward_temporary) ==
        Bytes{kRows * 32 * 4 + kRows * 4});
  REQUIRE(profile.forward_kernels.has_value());
  for (std::size_t op = 0; op < forward.size(); ++op) {
    CAPTURE(*forward[op]);
    if (*forward[op] == "rematch::attention") CHECK((*profile.forward_kernels)[OpId(op)] == 1);
    if (*forward[op] == "aten::view") CHECK((*profile.forward_kernels)[OpId(op)] == 0);
  }
}

}  // namespace
}  // namespace rematch::testing
