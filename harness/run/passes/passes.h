// The passes over one point in this process, each apart from the others so that none disturbs
// another. They fill a PointRecord; what ends one early stands in its status and reason.
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

// Parity, counts and memory (on meta counts and memory), parity alone, or time. Never throws for
// what a point may meet: out of memory, a loss that is not finite, a refused op; throws for a
// request that makes no sense. Call before the first tensor: it chooses the allocator.
PointRecord run_passes(const PointRequest& request);

// Runs the time passes of several points of one model by turns, in this process. Returns a record
// for each arm of the request, with its times summarized over the rounds. An arm that ends early
// takes no part in later rounds. Call before the first tensor.
std::vector<PointRecord> run_turns(const TurnsRequest& request);

// The parity pass: what each step leaves behind, bit by bit, in losses, gradients, parameters and
// generators. Steps from 0 on. Fills the point's steps, and says whether every parameter has a
// gradient. Throws LossNotFinite.
void parity_pass(Training& training, Job& job, int num_steps, PassPosition& position,
                 PointRecord& record);

// The memory pass: one step under a memory probe. `beside` observe the step, too.
MemoryRecord memory_pass(Training& training, at::Device device, std::int64_t step,
                         PassPosition& position, std::vector<OpObserver*> beside = {});

// The rule for steps that precede timed ones. They end when there are `min_steps` of them and they
// have taken `min_time`.
struct WarmUp {
  int min_steps = kWarmUpSteps;
  std::chrono::milliseconds min_time{0};
};

// Returns the rule for the first timed steps of a process. A GPU needs a second until its clocks
// and the kernel choices of its libraries settle.
WarmUp warm_up_of_process(at::Device device);

// The steps of one time pass. Step `first` begins the warm-up, which `count` timed steps follow.
struct StepsToTime {
  std::int64_t first = 0;
  int count = 1;
  WarmUp warm_up;
};

// Runs a time pass: steps with nothing attached but a clock. Fills the point's time with one round
// of samples and phases. On a GPU it adds the device's state and the peaks of its allocator,
// elsewhere the time of each op class. Returns the number of the next step. Throws LossNotFinite.
std::int64_t time_pass(Training& training, const Job& job, const StepsToTime& steps,
                       PassPosition& position, PointRecord& record);

// The copy time pass: steps of a plan that offloads with a timer on the copies and nothing else.
// Medians over `num_steps` steps from `first_step` on, after warm-up. Not on meta tensors and not
// on the dry device, where copies take no time.
void copy_time_pass(Training& training, at::Device device, std::int64_t first_step, int num_steps,
                    PassPosition& position, HostRecord& host);

// The counting pass of a GPU: which kernels the steps really ran, from the device's own records.
// Fills the point's kernels and the times of its op classes, or says why there are none: activity
// that cannot be recorded at all, or does not add up, is no fault of what else was measured. Counts
// at least two steps, so that one is held against the other.
void kernel_pass(Training& training, at::Device device, std::int64_t first_step, int num_steps,
                 PointRecord& record);

// A step of which PyTorch's CUDA allocator writes down every event, each named after the op that
// asked. Writes the snapshot to `file`; throws FileError if it cannot.
void snapshot_pass(Training& training, std::int64_t step, const std::string& file,
                   PassPosition& position);

}  // namespace rematch
