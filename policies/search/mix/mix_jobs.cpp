#include "policies/search/mix/mix_jobs.h"

#include <algorithm>
#include <tuple>

namespace rematch {

MixJob make_job(const MixProblem& problem, int layer, int option) {
  const LayerOption& described = problem.lists[problem.list_of_layer[layer]][option];
  Bytes born;
  if (!problem.gradients.empty()) born = problem.gradients[layer + described.num_layers - 1];
  const Bytes transient = std::max(described.transient + born, described.forward_transient);
  return {.held = described.held.count,
          .transient = transient.count,
          .time = described.time.count(),
          .option = option,
          .num_layers = described.num_layers,
          .offloaded = described.offloaded.count,
          .transient_beside = (described.transient_beside + born).count,
          .passes_on = described.passes_on};
}

MixJob with_offloaded_before(MixJob job, std::int64_t before) {
  if (before > 0) job.transient = std::max(job.transient, job.transient_beside + before);
  return job;
}

namespace {

bool fits(const MixProblem& problem, int layer, const LayerOption& option) {
  const auto num_left = static_cast<int>(problem.list_of_layer.size()) - layer;
  if (option.num_layers > num_left) return false;
  const auto begin = problem.list_of_layer.begin() + layer;
  if (!option.covers.empty()) return std::equal(option.covers.begin(), option.covers.end(), begin);
  return std::all_of(begin, begin + option.num_layers, [&](int list) { return list == *begin; });
}

}  // namespace

std::vector<MixJob> jobs_at(const MixProblem& problem, int layer) {
  const std::vector<LayerOption>& options = problem.lists[problem.list_of_layer[layer]];
  std::vector<MixJob> jobs;
  for (std::size_t option = 0; option < options.size(); ++option) {
    if (fits(problem, layer, options[option])) {
      jobs.push_back(make_job(problem, layer, static_cast<int>(option)));
    }
  }
  return jobs;
}

void order_jobs(const MixProblem& problem, int first_layer, std::vector<MixJob>& jobs) {
  const int next = first_layer + 1;
  Bytes growth;  // bytes of one layer's gradients
  if (next < static_cast<int>(problem.gradients.size())) {
    growth = problem.gradients[first_layer] - problem.gradients[next];
  }
  const std::vector<LayerOption>& options = problem.lists[problem.list_of_layer[first_layer]];
  const auto key = [&](const MixJob& job) {
    const std::int64_t born = growth.count * job.num_layers;
    const std::int64_t transient = options[job.option].transient.count;
    const bool grows = job.held > born;
    return std::tuple(grows, grows ? job.held - transient : transient - born, job.option);
  };
  std::stable_sort(jobs.begin(), jobs.end(),
                   [&](const MixJob& a, const MixJob& b) { return key(a) < key(b); });
}

}  // namespace rematch
