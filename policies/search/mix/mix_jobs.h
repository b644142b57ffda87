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
// Note [The order of options on equal layers] Each layer's gradients have G bytes. Let h be a
// layer's held bytes minus G, and let t be its transient minus G. Up to a constant, the peak is the
// maximum over all layers of t plus the sum of h over all earlier layers. This is a scheduling
// problem with release and delivery times. The best order is known (Jackson; Abdel-Wahab and
// Kameda):
// 1. the layers with h <= 0, by increasing t
// 2. the other layers, by decreasing t - h
void order_jobs(const MixProblem& problem, int first_layer, std::vector<MixJob>& jobs);

}  // namespace rematch
