// The flags that say which model: --model, every dimension, --dtype, --ops. And the trace of that
// model, recorded on meta or, in a build without LibTorch, read from a file.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "models/preset/preset.h"
#include "policies/trace/trace.h"

namespace rematch {

// A dimension of which several values are to be tried: --batch 1:64.
struct DimensionRange {
  std::string name;
  std::int64_t least = 0;
  std::int64_t most = 0;
};

class ModelFlags {
 public:
  // Adds --dtype, --ops, --video and the dimensions; --model where the model is not positional.
  enum class Name : std::uint8_t { kFlag, kPositional };
  ModelFlags(CLI::App& app, Name name);
  // Adds --world, for commands that predict: of a model it is --parallel fsdp=N; a stored trace is
  // sharded by an estimate (sharding.h).
  void add_world(CLI::App& app);

  const std::string& model() const { return model_; }
  // Throws UsageError, also where a range was given, and for --world beside a layout.
  ModelSpec spec() const;
  // With these dimensions and this dtype wherever no flag says another.
  ModelSpec spec_on(const std::string& model, const std::map<std::string, std::int64_t>& dimensions,
                    const std::string& dtype) const;
  // With --ops fused; nothing if that was given already.
  std::optional<ModelSpec> spec_of_fused_ops() const;
  // The range given to --batch or --tokens; nothing if each was a number or not given.
  const std::optional<DimensionRange>& range() const { return range_; }
  ModelSpec spec_at(std::int64_t value) const { return spec_with(range_.value().name, value); }
  // The same model over so many ranks of fsdp; nothing beside a layout of --parallel.
  std::optional<ModelSpec> spec_over(int ranks) const;
  // The ranks of --world that a stored trace is estimated for; nothing without the flag, and for a
  // model.
  std::optional<int> ranks_of_trace(const std::string& trace_file) const;
  // The same model with fewer layers. Throws UsageError if it does not have more.
  ModelSpec spec_with_layers(std::int64_t layers) const;
  // The same model with so many tokens; a video's grid is picked anew. Throws UsageError.
  ModelSpec spec_with_tokens(std::int64_t tokens) const;
  // The layout of --parallel; empty without it. For what is measured of ranks whatever the model:
  // throws UsageError if flags name one.
  std::map<std::string, std::int64_t> layout_alone() const;
  // On stderr, where --tokens alone picked the grid of a video model: for whoever makes the first
  // spec of a command.
  void say_grid(const ModelSpec& spec) const;

 private:
  std::string model_;
  std::string dtype_ = "float32";
  const CLI::Option* dtype_option_ = nullptr;  // whether it was given
  std::string ops_ = "eager";
  std::string video_;
  std::map<std::string, std::int64_t> dimensions_;  // those given
  std::optional<DimensionRange> range_;
  std::optional<int> world_;

  void add_dimension(CLI::App& app, const DimensionEntry& entry);
  void read_number_or_range(const std::string& name, const std::string& text);
  std::map<std::string, std::int64_t> sharded_dimensions() const;
  ModelSpec spec_with(const std::string& dimension, std::int64_t value) const;
};

// From `trace_file`, or if that is empty recorded for the flags' model, its grid said. Throws
// UsageError: a build without LibTorch cannot record, a file that is not there, a stored trace of a
// rank that --world would shard again.
Trace obtain_trace(const ModelFlags& flags, const std::string& trace_file);
// Recorded on meta. Throws UsageError in a build without LibTorch.
Trace record_trace(const ModelSpec& spec);

}  // namespace rematch
