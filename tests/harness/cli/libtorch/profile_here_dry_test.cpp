// Tests that a request for a profile is rejected before the first step if a step does not fit into
// the card's memory. Uses the dry device.
#include <cstdlib>

#include "harness/cli/exit_code.h"
#include "harness/cli/flags/shared_flags.h"
#include "harness/cli/libtorch/profile_here.h"
#include "harness/run/prediction/memory_fit.h"
#include "tests/support/cuda.h"

namespace rematch::testing {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

ProfileSettings settings_of_batch(int batch) {
  CLI::App app;
  const RunFlags flags(app);
  app.parse(
      "--model wan_small --layers 4 --dim 512 --heads 8 --frames 8 --height 64 --width 64 "
      "--batch " +
      std::to_string(batch));
  ProfileSettings settings;
  settings.model = flags.model.spec();
  settings.device = "cuda";
  settings.optimizer = "adamw";
  settings.num_steps = 1;
  return settings;
}

void profile(const ProfileSettings& settings) {
  profile_here(settings, record_trace(settings.model));
}

// The card is a dry l40s with 45460 MiB. The CUDA context takes 512 MiB. Fragmentation of the
// allocator is assumed to add a fifth to the memory of tensors.
TEST_CASE(
    "available memory excludes the CUDA context; usual_memory_of() also subtracts fragmentation",
    "[device]") {
  REMATCH_NEEDS_CUDA();
  REQUIRE(cuda_device(0)->memory.count == 45460 * kMiB);
  CHECK(available_memory_of("cuda")->bytes.count == (45460 - 512) * kMiB);
  CHECK(std::abs(usual_memory_of("cuda")->bytes.count - (45460 - 512) * kMiB * 5 / 6) <= 1);
  CHECK(usual_memory_of("cpu")->what == available_memory_of("cpu")->what);
  CHECK_FALSE(usual_memory_of("meta").has_value());
}

// The step's peak is 37 GiB. This is less than the card's memory, but more than the usual share for
// tensors.
TEST_CASE(
    "a profile whose peak exceeds the usual share of the card's memory is refused without --force",
    "[device]") {
  REMATCH_NEEDS_CUDA();
  ProfileSettings settings = settings_of_batch(6);
  CHECK_THROWS_WITH(
      profile(settings),
      Catch::Contains("the predicted peak is 37.") &&
          Catch::Contains("usual share for tensors of the 44.4 GiB of the dry l40s") &&
          Catch::Contains(": 36.6 GiB; run fewer layers") && Catch::Contains("--force"));
  CHECK_THROWS_AS(profile(settings), UsageError);
  settings.force = true;
  CHECK_NOTHROW(profile(settings));
  CHECK_NOTHROW(profile(settings_of_batch(5)));
}

}  // namespace
}  // namespace rematch::testing
