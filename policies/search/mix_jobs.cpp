#include "policies/search/mix_jobs.h"

#include <algorithm>
#include <tuple>

namespace rematch {

MixJob make_job(const MixProblem& problem, int layer, int option) {
  const LayerOption& described = problem.lists[problem.list_of_layer[layer]][option];
  Bytes transient = described.transient;
  if (!problem.gradients.empty()) {
    transient += problem.gradients[layer + described.num_layers - 1];
  }
  transient = std::max(transient, described.forward_transient);
  return {described.held.count, transient.count, described.time.count(), option,
          described.num_layers};
}

std::vector<MixJob> jobs_at(const MixProblem& problem, int layer) {
  const int list = problem.list_of_layer[layer];
  int same = 0;  // layers from here on that are of this list
  while (layer + same < static_cast<int>(problem.list_of_layer.size()) &&
         problem.list_of_layer[layer + same] == list) {
    ++same;
  }
  std::vector<MixJob> jobs;
  for (std::size_t option = 0; option < problem.lists[list].size(); ++option) {
    if (problem.lists[list][option].num_layers <= same) {
      jobs.push_back(make_job(problem, layer, static_cast<int>(option)));
    }
  }
  return jobs;
}

void order_jobs(const MixProblem& problem, int first_layer, std::vector<MixJob>& jobs) {
  const int next = first_layer + 1;
  Bytes growth;  // of a layer
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
