// The flags that choose a model: --model, every dimension, --dtype and --ops. Also records the
// model's trace on meta, or reads the trace from a file.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/preset/preset.h"
#include "policies/trace/trace.h"

namespace rematch {

// A dimension with a range of values to try. For example --batch 1:64.
struct DimensionRange {
  std::string name;
  std::int64_t least = 0;
  std::int64_t most = 0;
};

class ModelFlags {
 public:
  // Adds --dtype, --ops, --video and the dimensions. Adds --model unless the model is positional.
  enum class Name : std::uint8_t { kFlag, kPositional };
  ModelFlags(CLI::App& app, Name name);
  // Adds --world, for commands that predict. For a model, --world N means --parallel fsdp=N. For a
  // stored trace, the sharding is estimated (sharding.h).
  void add_world(CLI::App& app);

  const std::string& model() const { return model_; }
  // Returns the spec that the flags give. Throws UsageError if the flags are invalid, for example
  // if a range was given or --world is combined with a layout.
  ModelSpec spec() const;
  // Returns the spec of `model`. `dimensions` and `dtype` are the defaults for flags that are not
  // given.
  ModelSpec spec_on(const std::string& model, const std::map<std::string, std::int64_t>& dimensions,
                    const std::string& dtype) const;
  // Returns the spec with --ops fused, or nullopt if --ops fused was already given.
  std::optional<ModelSpec> spec_of_fused_ops() const;
  // Returns the same flags with --kept-logits 1. Absent if --kept-logits was given, or if the model
  // has no fused loss.
  std::optional<ModelFlags> with_kept_logits() const;
  // Returns the range given to --batch or --tokens. Absent if both are single numbers or not given.
  const std::optional<DimensionRange>& range() const { return range_; }
  ModelSpec spec_at(std::int64_t value) const { return spec_with(range_.value().name, value); }
  // Returns the same model with FSDP over this many ranks. Absent if --parallel gives a layout.
  std::optional<ModelSpec> spec_over(int ranks) const;
  // Returns the number of ranks (--world) for which the sharding of a trace file is estimated.
  // Absent without a trace file.
  std::optional<int> ranks_of_trace(const std::string& trace_file) const;
  // Throws UsageError if a flag was given that names a model or would change the step of a stored
  // trace.
  void require_flags_of_trace() const;
  // Returns the value of --accumulate, which also applies to a stored trace. Throws UsageError if
  // it is out of range.
  std::optional<std::int64_t> micro_batches_of_trace() const;
  // Returns the same model with fewer layers. Throws UsageError if this model has only `layers`
  // layers or fewer.
  ModelSpec spec_with_layers(std::int64_t layers) const;
  // Returns the same model with this many tokens. The grid of a video model is chosen again. Throws
  // UsageError.
  ModelSpec spec_with_tokens(std::int64_t tokens) const;
  // Returns the layout given to --parallel, or an empty map. Throws UsageError if flags name a
  // model, because callers measure something that does not depend on a model.
  std::map<std::string, std::int64_t> layout_alone() const;
  // Prints the grid of a video model to stderr if only --tokens was given.
  void say_grid(const ModelSpec& spec) const;

 private:
  Name name_;
  std::string model_;
  std::string dtype_ = "float32";
  const CLI::Option* dtype_option_ = nullptr;  // used to find out whether the flag was given
  std::string ops_ = "eager";
  std::string gradient_dtype_;  // empty: the dtype of the model
  std::string video_;
  std::map<std::string, std::int64_t> dimensions_;  // dimensions given as flags
  std::optional<DimensionRange> range_;
  std::optional<int> world_;

  void add_dimension(CLI::App& app, const DimensionEntry& entry);
  // Returns the given flags that choose a model or one of its dimensions, except --accumulate.
  std::vector<std::string> given_for_model() const;
  void read_number_or_range(const std::string& name, const std::string& text);
  std::map<std::string, std::int64_t> sharded_dimensions() const;
  ModelSpec spec_with(const std::string& dimension, std::int64_t value) const;
};

// Reads `trace_file`. If `trace_file` is empty, records the model that the flags describe, after
// ModelFlags::say_grid().
// Throws UsageError if the build cannot record, the file is missing, or --world would shard a
// rank's trace again.
Trace obtain_trace(const ModelFlags& flags, const std::string& trace_file);
// Records the trace on meta. Throws UsageError in a build without LibTorch.
Trace record_trace(const ModelSpec& spec);

}  // namespace rematch
