// A job is an option together with the layers that it covers. Layer mixing and its lower bound use
// jobs.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/search/mix/layer_mix.h"

namespace rematch {

struct MixJob {
  std::int64_t held = 0;
  // Most bytes during forward or backward of the layers, including gradients.
  std::int64_t transient = 0;
  std::int64_t time = 0;
  std::int32_t option = 0;
  int num_layers = 1;
  std::int64_t offloaded = 0;
  std::int64_t transient_beside = 0;
  bool passes_on = true;
};

// Both functions deal with offloading: see Note [Offloading in a mix]. `before` is the
// number of bytes that the layers before the job offload. with_offloaded_before() adds these bytes
// to the job's transient. offloaded_behind() returns the `before` of the layers after the job.
MixJob with_offloaded_before(MixJob job, std::int64_t before);
inline std::int64_t offloaded_behind(const MixJob& job, std::int64_t before) {
  return job.passes_on ? before : job.offloaded;
}

MixJob make_job(const MixProblem& problem, int layer, int option);

// Returns the jobs of all options that can start at `layer`.
std::vector<MixJob> jobs_at(const MixProblem& problem, int layer);

// Sorts a sequence of jobs that starts at `first_layer` into the order with the lowest peak.
//
// Note [The order of options on equal layers]
// Let G be the bytes of one layer's gradients, h a layer's held bytes minus G, and t its transient
// minus G. Up to a constant, the peak is the maximum, over all layers, of t plus the sum of h over
// all earlier layers. This is a scheduling problem with a known solution (Jackson; Abdel-Wahab and
// Kameda):
// 1. the layers with h <= 0, by increasing t
// 2. the other layers, by decreasing t - h
void order_jobs(const MixProblem& problem, int first_layer, std::vector<MixJob>& jobs);

}  // namespace rematch
