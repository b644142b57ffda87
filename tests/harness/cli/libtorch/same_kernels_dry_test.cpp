// Tests that `profile`, `search --measure` and `run` use the same attention kernel, and that all of
// them use deterministic kernels if requested. The dry device has no cuDNN. Flash attention
// supports heads up to 256 wide, so LibTorch uses another backend for wider heads.
#include <cstdlib>

#include "harness/cli/flags/run_request.h"
#include "harness/cli/libtorch/profile_here.h"
#include "harness/cli/libtorch/run_setup.h"
#include "harness/run/children/request.h"
#include "harness/run/passes/passes.h"
#include "kernels/attention/backend.h"
#include "tests/support/cuda.h"

namespace rematch::testing {
namespace {

const bool kIsL40s = setenv("DRY_CUDA_CARD", "l40s", 1) == 0;

// With one head, the head is 544 wide. With seventeen heads, each is 32 wide.
std::string model_of_heads(int num_heads) {
  const std::string heads = std::to_string(num_heads);
  return "--model llama_small --layers 1 --dim 544 --heads " + heads + " --kv-heads " + heads +
         " --ffn 64 --tokens 64 --batch 1 --dtype bfloat16 ";
}

template <class Flags>
struct Parsed {
  explicit Parsed(const std::string& words) : flags(app) { app.parse(words); }
  CLI::App app;
  Flags flags;
};

// Times one step of the request's first variant.
TimeRecord timed(const RunRequest& request) {
  const auto settings = std::get<RunSettings>(settings_here(request));
  auto variants = std::get<std::vector<Variant>>(make_variants(settings));
  const PointRecord record =
      run_passes(request_for(settings, variants.front(), Pass::kTime, /*num_steps=*/1));
  CAPTURE(record.reason);
  REQUIRE(record.time.has_value());
  return *record.time;
}

TimeRecord timed_by_run(const std::string& flags) {
  const Parsed<RunFlags> run(flags + "--policy none --device cuda");
  return timed(request_of(run.flags));
}

TimeRecord timed_by_front(const std::string& flags) {
  const Parsed<SearchFlags> search(flags + "--profile p.json --measure 3 --steps 1");
  return timed(request_of(search.flags, "cuda", Front(), {}));
}

Profile profiled(const std::string& flags) {
  const Parsed<RunFlags> parsed(flags);
  ProfileSettings settings;
  settings.model = parsed.flags.model.spec();
  settings.device = "cuda";
  settings.optimizer = "adamw";
  settings.num_steps = 1;
  settings.attention = parsed.flags.attention;
  settings.deterministic_times = parsed.flags.deterministic_times;
  return profile_here(settings, record_trace(settings.model));
}

void check_alike(const std::string& flags, const std::string& attention, bool repeatable_bits) {
  CAPTURE(flags);
  const TimeRecord run = timed_by_run(flags);
  CHECK(run.attention_backend == attention);
  CHECK(run.repeatable_bits == repeatable_bits);
  const TimeRecord front = timed_by_front(flags);
  CHECK(front.attention_backend == attention);
  CHECK(front.repeatable_bits == repeatable_bits);
  const Profile profile = profiled(flags);
  CHECK(profile.attention_backend == attention);
  CHECK(profile.repeatable_bits == repeatable_bits);
}

TEST_CASE("profile, search and run use the attention kernel that LibTorch chooses", "[device]") {
  REMATCH_NEEDS_CUDA();
  check_alike(model_of_heads(1), "efficient", false);
  check_alike(model_of_heads(17), "flash", false);
}

TEST_CASE("profile, search and run use the attention kernel that --attention names", "[device]") {
  REMATCH_NEEDS_CUDA();
  for (const std::string attention : {"flash", "efficient", "math"}) {
    check_alike(model_of_heads(17) + "--attention " + attention + " ", attention, false);
  }
}

TEST_CASE("profile, search and run use deterministic kernels on request", "[device]") {
  REMATCH_NEEDS_CUDA();
  check_alike(model_of_heads(17) + "--deterministic-times ", "flash", true);
}

}  // namespace
}  // namespace rematch::testing
