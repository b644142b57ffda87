#include "harness/cli/model_flags.h"

#include <set>

#include "harness/cli/require.h"
#include "policies/trace/file.h"
#include "policies/trace/trace_json.h"
#ifdef REMATCH_LIBTORCH
#include "harness/measure/memory.h"
#include "harness/run/prediction.h"
#endif

namespace rematch {
namespace {

// The spec's name of what --ops says.
constexpr std::string_view kFusedOpsOption = "fused_ops";

std::string flag_of(std::string_view dimension) {
  std::string flag = "--" + std::string(dimension);
  for (char& letter : flag) {
    if (letter == '_') letter = '-';
  }
  return flag;
}

}  // namespace

ModelFlags::ModelFlags(CLI::App& app, Name name) {
  if (name == Name::kPositional) {
    app.add_option("model", model_, "Preset of the model: see rematch list");
  } else {
    app.add_option("--model", model_, "Preset of the model: see rematch list");
  }
  app.add_option("--dtype", dtype_, "float32 or bfloat16 (with float32 master weights)");
  app.add_option("--ops", ops_,
                 "eager: norms, modulation, rotary embedding, SwiGLU and loss as ATen's ops; "
                 "fused: one op each");
  app.add_option("--video", video_, "A DiT's video, frames x height x width: 77x480x832");
  std::set<std::string_view> added;
  for (const ModelFamily family : model_families()) {
    for (const DimensionEntry& entry : dimension_entries(family)) {
      if (entry.name == kFusedOpsOption || !added.insert(entry.name).second) continue;
      const std::string key(entry.name);
      app.add_option_function<std::int64_t>(
             flag_of(entry.name),
             [this, key](const std::int64_t& value) { dimensions_[key] = value; },
             std::string(entry.description))
          ->group("Dimensions");
    }
  }
}

ModelSpec ModelFlags::spec() const {
  if (model_.empty()) throw UsageError("no model given; rematch list shows them");
  std::map<std::string, std::int64_t> overrides = dimensions_;
  if (ops_ != "eager" && ops_ != "fused") {
    throw UsageError("unknown ops '" + ops_ + "'; allowed are eager, fused");
  }
  if (ops_ == "fused") overrides[std::string(kFusedOpsOption)] = 1;
  if (!video_.empty()) {
    const ModelFamily family = require<ModelSpec>(make_spec(model_, {}, dtype_)).family;
    const auto grid =
        require<std::map<std::string, std::int64_t>>(video_dimensions(video_, family));
    overrides.insert(grid.begin(), grid.end());
  }
  return require<ModelSpec>(make_spec(model_, overrides, dtype_));
}

Trace obtain_trace(const ModelFlags& flags, const std::string& trace_file) {
  if (!trace_file.empty()) return trace_from_json(require_json_file(trace_file));
#ifdef REMATCH_LIBTORCH
  install_counting_allocators();
  return MetaModel(flags.spec(), OptimizerKind::kNothing, "", 0).trace();
#else
  static_cast<void>(flags.spec());
  throw UsageError(
      "this build has no LibTorch, so it cannot record the model's trace; give a "
      "stored one with --trace FILE, or build preset dev");
#endif
}

}  // namespace rematch
