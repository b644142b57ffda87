#include "harness/cli/libtorch/predict_model.h"

#include "harness/measure/memory.h"
#include "harness/run/prediction/prediction.h"

namespace rematch {

TracedModel trace_for_prediction(const ModelSpec& spec, OptimizerKind optimizer, Sizes sizes) {
  const bool runs_here = optimizer == OptimizerKind::kAdamW;
  return trace_model(spec, runs_here ? optimizer : OptimizerKind::kNothing, /*data_file=*/"",
                     /*seed=*/0, sizes == Sizes::kAsCudaRounds ? kCudaRounding : 1);
}

}  // namespace rematch
