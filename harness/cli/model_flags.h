// The flags that say which model: --model, every dimension, --dtype, --ops. And the trace of that
// model, recorded on meta or, in a build without LibTorch, read from a file.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <string>

#include "models/preset/preset.h"
#include "policies/trace/trace.h"

namespace rematch {

class ModelFlags {
 public:
  // Adds --dtype, --ops, --video and the dimensions; --model where the model is not positional.
  enum class Name : std::uint8_t { kFlag, kPositional };
  ModelFlags(CLI::App& app, Name name);

  const std::string& model() const { return model_; }
  ModelSpec spec() const;  // throws UsageError

 private:
  std::string model_;
  std::string dtype_ = "float32";
  std::string ops_ = "eager";
  std::string video_;
  std::map<std::string, std::int64_t> dimensions_;  // those given
};

// From `trace_file`, or if that is empty recorded for `spec`. Throws UsageError: a build without
// LibTorch cannot record, a file that is not there.
Trace obtain_trace(const ModelFlags& flags, const std::string& trace_file);

}  // namespace rematch
