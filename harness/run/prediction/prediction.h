// Traces a model on meta: on tensors without data and a counting allocator, so a model of any size
// takes milliseconds. Collects what else a prediction needs.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "harness/training/training.h"
#include "policies/trace/trace.h"
#include "reports/record/step_predictor.h"

namespace rematch {

// Requires install_counting_allocators(). No other meta tensors may be alive, because the allocator
// counts the bytes of all meta tensors.
class MetaModel {
 public:
  // `data_file` is only checked. Its contents do not affect the result. Throws what make_data
  // throws.
  MetaModel(const ModelSpec& spec, const OptimizerChoice& optimizer, const std::string& data_file,
            std::uint64_t seed);

  // Returns the trace of a step, with unrounded sizes if the allocators do not round.
  Trace trace();
  // Returns the trace with all sizes rounded up, as the counting allocators round them. They must
  // have been installed with this `round` before the model was made.
  RoundedTrace rounded_trace(std::int64_t round);
  // The ops of one update of the optimizer. Filled by the functions above.
  const std::map<std::string, std::int64_t>& optimizer_ops() const { return optimizer_ops_; }
  Bytes frozen_bytes() const;

  Training& training() { return training_; }

 private:
  // Runs what a step does after backward. Adds to the trace which collectives this issues.
  void finish_step(Trace& trace);

  ModelSpec spec_;
  OptimizerKind optimizer_;
  Training training_;
  std::map<std::string, std::int64_t> optimizer_ops_;
};

// Traces a model for predictions. With `round` above 1, also traces it with rounded sizes. Installs
// the counting allocators with `round`. Throws what MetaModel throws.
TracedModel trace_model(const ModelSpec& spec, const OptimizerChoice& optimizer,
                        const std::string& data_file, std::uint64_t seed, std::int64_t round);

}  // namespace rematch
