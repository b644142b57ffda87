// Traces a model on device meta: tensors have no data and the allocator only counts, so a model of
// any size takes milliseconds. Also collects optimizer ops and frozen bytes, which predictions
// need.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "harness/training/training.h"
#include "policies/trace/trace.h"
#include "reports/record/step_predictor.h"

namespace rematch {

// Requires install_counting_allocators(). No other meta tensors may exist, because the allocator
// counts the bytes of all meta tensors.
class MetaModel {
 public:
  // Checks `data_file`, but does not use its contents. Throws what make_data() throws.
  MetaModel(const ModelSpec& spec, const OptimizerChoice& optimizer, const std::string& data_file,
            std::uint64_t seed);

  // Returns the trace of a step. Sizes are rounded only if the counting allocators round.
  Trace trace();
  // Returns the trace with all sizes rounded up, as the counting allocators round them. The
  // allocators must have been installed with this `round` before the model was made.
  RoundedTrace rounded_trace(std::int64_t round);
  // The ops of one optimizer update. Empty until trace() or rounded_trace() has run.
  const std::map<std::string, std::int64_t>& optimizer_ops() const { return optimizer_ops_; }
  Bytes frozen_bytes() const;

  Training& training() { return training_; }

 private:
  // Traces forward and backward of one micro-batch.
  Trace trace_passes(const Batch& batch, const at::Tensor& input);
  // Traces a pipeline stage without the loss.
  Trace trace_stage(const Batch& batch, const at::Tensor& input);
  // Runs the part of a step after backward. Adds the collectives of this part to the trace.
  void finish_step(Trace& trace);

  ModelSpec spec_;
  OptimizerKind optimizer_;
  Training training_;
  std::map<std::string, std::int64_t> optimizer_ops_;
};

// Traces a model for predictions: the first stage and its later_stages, for a pipeline. With
// `round` above 1, also traces it with rounded sizes. Installs the counting allocators with
// `round`. Throws what MetaModel throws.
TracedModel trace_model(const ModelSpec& spec, const OptimizerChoice& optimizer,
                        const std::string& data_file, std::uint64_t seed, std::int64_t round);

}  // namespace rematch
