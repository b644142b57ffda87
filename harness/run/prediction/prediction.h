// Traces a model on meta and predicts which ops a step under a plan executes and how many bytes it
// holds. The engine itself runs, on tensors without data and a counting allocator, so a model of
// any size takes milliseconds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "harness/training/training.h"
#include "policies/trace/trace.h"
#include "reports/record/point.h"

namespace rematch {

struct Prediction {
  CountsRecord counts;  // figures of one step
  MemoryRecord memory;
};

// Requires install_counting_allocators(). No other meta tensors may be alive, because the allocator
// counts the bytes of all meta tensors.
class MetaModel {
 public:
  // `data_file` is only checked. Its contents do not affect the result. Throws what make_data
  // throws.
  MetaModel(const ModelSpec& spec, const OptimizerChoice& optimizer, const std::string& data_file,
            std::uint64_t seed);

  Trace trace();
  Prediction predict(const Plan& plan, Schedule schedule);

 private:
  ModelSpec spec_;
  Training training_;
};

}  // namespace rematch
