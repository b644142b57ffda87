#include "harness/cli/files/output.h"
#include "harness/cli/flags/model_flags.h"
#include "harness/cli/libtorch/doctor.h"
#include "harness/cli/libtorch/measure_front.h"
#include "harness/cli/libtorch/parts.h"
#include "harness/cli/libtorch/predict_model.h"
#include "harness/cli/libtorch/profile_here.h"
#include "harness/cli/libtorch/profile_links.h"
#include "harness/cli/libtorch/run_points.h"
#include "policies/base/json.h"

namespace rematch {
namespace {

[[noreturn]] void refuse(const std::string& command) {
  throw UsageError("rematch " + command +
                   " runs models, but this build has no LibTorch; build preset dev");
}

}  // namespace

bool has_libtorch() { return false; }

bool run_as_child(const std::vector<std::string>&) { return false; }

void prepare_timing(char**) {}

ExitCode run_points(const RunFlags&) { refuse("run"); }

TracedModel trace_for_prediction(const ModelSpec&, OptimizerKind, Sizes) {
  refuse("predict --model");
}

ExitCode doctor(bool json) {
  if (json) {
    print_json(
        Json({{"schema", "rematch.doctor/1.0"}, {"engine", nullptr}, {"devices", Json::object()}}));
  } else {
    print(std::string("rematch ") + REMATCH_VERSION +
          ", built without LibTorch: handles policies, plans and reports, but runs no models\n");
  }
  return ExitCode::kOk;
}

std::optional<AvailableMemory> memory_limit(const std::string&) { return std::nullopt; }

std::vector<std::string> cards_here() { return {}; }

Trace record_trace(const ModelSpec&) {
  throw UsageError(
      "this build has no LibTorch, so it cannot record the model's trace; give a "
      "stored one with --trace FILE, or build preset dev");
}

void require_measured_device(const std::string&, const std::string& command) { refuse(command); }

Profile profile_here(const ProfileSettings& settings, const Trace&) {
  refuse("profile --device " + settings.device);
}

ExitCode profile_links(const std::map<std::string, std::int64_t>&, const std::string&, int,
                       const OutputRequest&) {
  refuse("profile --links");
}

void require_measurable(const SearchFlags&) { refuse("search --measure"); }

ExitCode measure_front(const SearchFlags&, FrontRecord&) { refuse("search --measure"); }

}  // namespace rematch
