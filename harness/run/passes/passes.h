// The passes over one point in this process. They run one after another, so that no pass affects
// another, and fill a PointRecord. If a pass ends early, the record's status and reason say why.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/run/children/job.h"
#include "harness/run/children/request.h"
#include "harness/run/children/turns_request.h"
#include "harness/training/training.h"
#include "reports/record/point.h"

namespace rematch {

class OpObserver;

// Runs the passes that the request asks for. Skips the parity pass if values are meaningless. If
// the point fails, writes the failure to the record. Throws for an invalid request. Call this
// before the first tensor is made, because this function chooses the allocator.
PointRecord run_passes(const PointRequest& request);

// Runs the time passes of several points of one model alternately, in this process. Returns a
// record for each arm of the request, with its times summarized over the rounds. An arm that ends
// early is not run in later rounds. Call this before the first tensor is made.
std::vector<PointRecord> run_turns(const TurnsRequest& request);

// Runs the parity pass. Records hashes of each step's loss, gradients, parameters and random
// generators, from step 0 on. Also records whether every parameter has a gradient. Throws
// LossNotFinite.
void parity_pass(Training& training, Job& job, int num_steps, PassPosition& position,
                 PointRecord& record);

// Runs the memory pass: one step under a memory probe and the observers in `beside`.
MemoryRecord memory_pass(Training& training, at::Device device, std::int64_t step,
                         PassPosition& position, std::vector<OpObserver*> beside = {});

// Runs the replay pass on a GPU: a step op by op, and the same step as a replay of a CUDA graph.
// Records whether all bits are equal, if the parity pass has compared bits. Throws NotCapturable.
void replay_pass(Training& training, at::Device device, std::int64_t first_step,
                 PassPosition& position, PointRecord& record);

// The rule for the warm-up steps before timed steps. Warm-up takes at least `min_steps` steps and
// at least `min_time`.
struct WarmUp {
  int min_steps = kWarmUpSteps;
  std::chrono::milliseconds min_time{0};
};

// Returns the warm-up rule for the first timed steps of a process. A GPU's clocks and its
// libraries' choice of kernels become stable after about a second.
WarmUp warm_up_of_process(at::Device device);

// The steps of one time pass. Warm-up begins at step `first`, and `count` timed steps follow.
struct StepsToTime {
  std::int64_t first = 0;
  int count = 1;
  WarmUp warm_up;
  bool replayed = false;  // the timed steps replay one step, captured into a CUDA graph
};

// Runs a time pass, in which only a clock observes the steps. Fills the point's time with one round
// of samples and phases. On a GPU, adds the device's state and the peaks of its allocator. On other
// devices, adds the time of each op class. Returns the number of the next step. Throws
// LossNotFinite, and NotCapturable if the steps are to be replayed.
std::int64_t time_pass(Training& training, const Job& job, const StepsToTime& steps,
                       PassPosition& position, PointRecord& record);

// Measures the copies of a plan that offloads. Only a copy timer observes the steps. Fills
// medians over `num_steps` steps, beginning with `first_step`. Call this after warm-up. Do not call
// this on meta tensors or on the dry device, where copies take no time.
void copy_time_pass(Training& training, at::Device device, std::int64_t first_step, int num_steps,
                    PassPosition& position, HostRecord& host);

// Runs the kernel pass on a GPU: records the kernels of at least two steps from the device's
// activity records. Fills the point's kernels and the times of its op classes, or the reason why
// kernels are missing. Missing or inconsistent activity records do not fail the point.
void kernel_pass(Training& training, at::Device device, std::int64_t first_step, int num_steps,
                 PointRecord& record);

// Runs a step while PyTorch's CUDA allocator records every event, named after the op that caused
// it. Writes the snapshot to `file`. Throws FileError if writing fails.
void snapshot_pass(Training& training, std::int64_t step, const std::string& file,
                   PassPosition& position);

}  // namespace rematch
