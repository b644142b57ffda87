// The rank and process groups of this process when several ranks measure a point together. Also
// checks that all ranks measure the same plan and program. Does nothing for a point with one rank.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/run/children/request.h"
#include "harness/training/stage.h"

namespace rematch {

class CollectiveLog;
class Ranks;
class PretendedRanks;
struct RankPlace;

// Joins the other ranks of the spec's layout. If the machine has several GPUs, sets `device` to
// this rank's GPU.
std::unique_ptr<Ranks> join_ranks(const RankPlace& place, const ModelSpec& spec,
                                  c10::Device& device);

class Job {
 public:
  // Joins the other ranks of the request's layout, or simulates them. Checks that all ranks have
  // the same plan and program; throws RanksError if not. Throws std::invalid_argument if the
  // environment gives no rank, or a world size other than the layout's.
  explicit Job(const PointRequest& request);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  bool is_alone() const { return world_ == 1; }
  bool is_pretended() const {
    return pretended_ != nullptr;
  }  // true if this process simulates one rank; tensor values are then meaningless
  int rank() const { return rank_; }
  // The request's model, with this rank filled in.
  ModelSpec spec() const { return spec_; }
  // Passes tensors between stages. Null unless the ranks run the stages of a pipeline.
  StageLink* stage_link() const { return stage_link_.get(); }
  // The request's device or, if the machine has several GPUs, this rank's GPU.
  c10::Device device() const { return device_; }

  // Tells the launcher the current step, so that the launcher can name a rank that hangs.
  void begin_step(std::int64_t step);
  // Throws RanksError unless every rank's step issued the collectives in `log`. The error names the
  // ranks and the calls.
  void compare(CollectiveLog& log);
  // Adds the lists of all ranks element by element, in rank order, so that every rank gets the same
  // bits.
  std::vector<double> sum(const std::vector<double>& values);

 private:
  int world_ = 1;
  int rank_ = 0;
  ModelSpec spec_;
  c10::Device device_;
  std::unique_ptr<Ranks> ranks_;
  std::unique_ptr<PretendedRanks> pretended_;
  std::unique_ptr<StageLink> stage_link_;
};

}  // namespace rematch
