#include "harness/run/children/job.h"

#include <sstream>
#include <stdexcept>

#include "harness/measure/hash.h"
#include "harness/process/process.h"
#include "harness/ranks/collective_log.h"
#include "harness/ranks/place.h"
#include "harness/ranks/ranks.h"
#include "harness/run/children/stage_link.h"
#include "harness/training/device.h"
#include "models/preset/parallel.h"
#include "reports/record/point.h"

namespace rematch {
namespace {

RankPlace place_in(int world) {
  const std::optional<RankPlace> place = rank_place_from_environment();
  if (!place) {
    throw std::invalid_argument("the request is for " + std::to_string(world) +
                                " ranks, but the environment does not give this process a rank");
  }
  if (place->world != world) {
    throw std::invalid_argument("the request is for " + std::to_string(world) +
                                " ranks, but the environment says WORLD_SIZE " +
                                std::to_string(place->world));
  }
  return *place;
}

// Encodes each number as text, without rounding.
std::string text_of(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text.append(bits_of(value)).append(" ");
  return text;
}

std::vector<double> values_of(const std::string& text) {
  std::vector<double> values;
  std::istringstream words(text);
  for (std::string bits; words >> bits;) values.push_back(number_of_bits(bits).value());
  return values;
}

}  // namespace

std::unique_ptr<Ranks> join_ranks(const RankPlace& place, const ModelSpec& spec,
                                  c10::Device& device) {
  RanksOptions options;
  if (device.is_cuda() && place.world > 1) {
    device = c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(place.local_rank));
    options.transport = RanksOptions::Transport::kNccl;
  }
  return std::make_unique<Ranks>(place, rank_groups(spec), options);
}

Job::Job(const PointRequest& request)
    : world_(request.identity.world),
      spec_(spec_of(request)),
      device_(device_named(request.device)) {
  if (world_ == 1) return;
  if (const auto pretended = request.identity.pretended_rank) {
    rank_ = spec_.rank = *pretended;
    pretended_ = std::make_unique<PretendedRanks>(rank_, rank_groups(spec_));
    return;
  }
  if (device_.is_meta()) return;  // on device meta, a rank is traced without the other ranks
  const RankPlace place = place_in(world_);
  rank_ = spec_.rank = place.rank;
  ranks_ = join_ranks(place, spec_, device_);
  ranks_->agree("plan", request.identity.plan_sha256);
  ranks_->agree("program", own_executable_sha256());
  if (num_stages(spec_.dimensions) == 1) return;
  if (!device_.is_cpu()) {
    throw std::invalid_argument("the stages of a pipeline run on --device cpu only, not on " +
                                request.device);
  }
  stage_link_ = std::make_unique<RankStageLink>(spec_);
}

Job::~Job() = default;

void Job::begin_step(std::int64_t step) {
  if (ranks_) ranks_->note_step(step + 1);
}

void Job::compare(CollectiveLog& log) {
  // Stages issue different collectives.
  if (ranks_ && stage_link_ == nullptr) log.compare(*ranks_);
}

std::vector<double> Job::sum(const std::vector<double>& values) {
  if (!ranks_) return values;
  std::vector<double> total(values.size(), 0.0);
  for (const std::string& text : ranks_->values_of_all("sum", text_of(values))) {
    const std::vector<double> of_rank = values_of(text);
    if (of_rank.size() != total.size()) {
      throw std::invalid_argument("cannot sum over ranks: lists have " +
                                  std::to_string(total.size()) + " and " +
                                  std::to_string(of_rank.size()) + " numbers");
    }
    for (std::size_t index = 0; index < total.size(); ++index) total[index] += of_rank[index];
  }
  return total;
}

}  // namespace rematch
