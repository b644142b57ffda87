// An option placed on its layers: what layer mixing and its bound reckon with.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/search/mix/layer_mix.h"

namespace rematch {

struct MixJob {
  std::int64_t held = 0;
  std::int64_t transient = 0;  // of forward and backward, with the gradients born by then
  std::int64_t time = 0;
  std::int32_t option = 0;
  int num_layers = 1;
  std::int64_t offloaded = 0;
  std::int64_t transient_beside = 0;
  bool passes_on = true;
};

// The job behind layers that offload `before` bytes, and what the layers behind it have before
// them. See Note [What a mix has on the host].
MixJob beside(MixJob job, std::int64_t before);
inline std::int64_t offloaded_behind(const MixJob& job, std::int64_t before) {
  return job.passes_on ? before : job.offloaded;
}

MixJob make_job(const MixProblem& problem, int layer, int option);

// The jobs of all options that can start at `layer`.
std::vector<MixJob> jobs_at(const MixProblem& problem, int layer);

// Puts jobs that start at `first_layer`, side by side, in the order of the lowest peak.
//
// Note [The order of options on equal layers]
// With a layer's gradients of G bytes, take G from what each layer holds and from its transient:
// the peak is a sum of those before plus the layer's own, as in scheduling with release and
// delivery. Layers that then hold nothing or less come first, by increasing transient; the others
// by decreasing transient less held bytes (Jackson; Abdel-Wahab and Kameda).
void order_jobs(const MixProblem& problem, int first_layer, std::vector<MixJob>& jobs);

}  // namespace rematch
