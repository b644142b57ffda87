// A model on meta: its trace, and what a step under a plan will execute and hold. The engine itself
// runs, on tensors without data and a counting allocator, so sizes of any model take milliseconds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "harness/training/training.h"
#include "policies/trace/trace.h"
#include "reports/record/point.h"

namespace rematch {

struct Prediction {
  CountsRecord counts;  // of one step
  MemoryRecord memory;
};

// Needs install_counting_allocators(). Bytes are all that meta tensors hold, so no other meta
// tensors may be alive.
class MetaModel {
 public:
  // `data_file` is only checked: its bytes play no part. Throws what make_data throws.
  MetaModel(const ModelSpec& spec, const OptimizerChoice& optimizer, const std::string& data_file,
            std::uint64_t seed);

  Trace trace();
  Prediction predict(const Plan& plan, Schedule schedule);

 private:
  ModelSpec spec_;
  Training training_;
};

}  // namespace rematch
