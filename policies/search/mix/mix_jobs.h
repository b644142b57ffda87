// A job is an option together with the layers that it covers. Layer mixing and its lower bound use
// jobs.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/search/mix/layer_mix.h"

namespace rematch {

struct MixJob {
  std::int64_t held = 0;
  // Most bytes during forward or backward of the layers, including the gradients that exist at that
  // time.
  std::int64_t transient = 0;
  std::int64_t time = 0;
  std::int32_t option = 0;
  int num_layers = 1;
  std::int64_t offloaded = 0;
  std::int64_t transient_beside = 0;
  bool passes_on = true;
};

// The figures of a job depend on the bytes `before` that the layers before the job offload: see
// Note [What a mix has on the host]. with_offloaded_before() returns the job with its figures for
// `before`. offloaded_behind() returns the value of `before` for the layers after the job.
MixJob with_offloaded_before(MixJob job, std::int64_t before);
inline std::int64_t offloaded_behind(const MixJob& job, std::int64_t before) {
  return job.passes_on ? before : job.offloaded;
}

MixJob make_job(const MixProblem& problem, int layer, int option);

// Returns the jobs of all options that can start at `layer`.
std::vector<MixJob> jobs_at(const MixProblem& problem, int layer);

// Sorts a sequence of jobs that starts at `first_layer` into the order with the lowest peak.
//
// Note [The order of options on equal layers] Each layer's gradients have G bytes. Subtract G from
// what each layer holds and from its transient. The peak is then the maximum over all layers of the
// bytes that earlier layers hold plus the layer's own transient. This is a scheduling problem with
// release and delivery times. After the subtraction, layers whose held bytes are zero or negative
// come first, by increasing transient. The others follow by decreasing transient minus held bytes
// (Jackson; Abdel-Wahab and Kameda).
void order_jobs(const MixProblem& problem, int first_layer, std::vector<MixJob>& jobs);

}  // namespace rematch
