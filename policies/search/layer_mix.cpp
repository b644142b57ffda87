#include "policies/search/layer_mix.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "policies/search/mix_jobs.h"
#include "policies/search/thin.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

// What the layers from some layer on need, and cost.
struct MixLabel {
  std::int64_t peak = 0;
  std::int64_t time = 0;
  std::int32_t option = 0;
  std::int32_t rest = 0;  // index into the labels behind the option's layers
};

// A layer takes less than a millisecond with so many.
constexpr std::size_t kLabelsOnceStopped = 64;

using MixLabels = std::vector<MixLabel>;  // by peak ascending, times strictly descending

// All labels of one option before `rest`.
void prepend(const MixJob& job, const MixLabels& rest, MixLabels& result) {
  result.clear();
  const auto first_above = std::partition_point(
      rest.begin(), rest.end(),
      [&](const MixLabel& label) { return label.peak + job.held <= job.transient; });
  const auto add = [&](MixLabels::const_iterator label, std::int64_t peak) {
    result.push_back({peak, label->time + job.time, job.option,
                      static_cast<std::int32_t>(label - rest.begin())});
  };
  if (first_above != rest.begin()) add(first_above - 1, job.transient);
  for (auto label = first_above; label != rest.end(); ++label) add(label, label->peak + job.held);
}

// The undominated of two such lists.
void merge(const MixLabels& a, const MixLabels& b, MixLabels& result) {
  result.clear();
  result.reserve(a.size() + b.size());
  auto left = a.begin();
  auto right = b.begin();
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  while (left != a.end() || right != b.end()) {
    const bool take_left =
        right == b.end() || (left != a.end() && std::pair(left->peak, left->time) <=
                                                    std::pair(right->peak, right->time));
    const MixLabel& label = take_left ? *left++ : *right++;
    if (label.time >= best) continue;
    best = label.time;
    result.push_back(label);
  }
}

class Mixer {
 public:
  Mixer(const MixProblem& problem, std::size_t max_labels, const std::function<bool()>& stop)
      : problem_(problem), max_labels_(std::max<std::size_t>(max_labels, 2)), stop_(stop) {}

  MixFront run() {
    const int num_layers = static_cast<int>(problem_.list_of_layer.size());
    labels_.resize(num_layers + 1);
    labels_[num_layers] = {{problem_.head.count, 0, 0, 0}};
    for (int layer = num_layers - 1; layer >= 0; --layer) add_layer(layer);
    MixFront front;
    front.time_gap = nanoseconds(gap_);
    for (MixLabel& label : labels_[0]) {
      // The floor counts for the whole step only: what holds before a layer does not add to it.
      label.peak = std::max(label.peak, problem_.floor.count);
      if (!front.points.empty() && front.points.back().peak.count == label.peak) {
        front.points.pop_back();
      }
      front.points.push_back({Bytes{label.peak}, nanoseconds(label.time), options_of(label)});
    }
    return front;
  }

 private:
  void add_layer(int layer) {
    MixLabels one;
    MixLabels merged;
    MixLabels& all = labels_[layer];
    if (stop_ && stop_()) {
      max_labels_ = std::min(max_labels_, kLabelsOnceStopped);
      thin_to_limit(layer + 1);
    }
    for (const MixJob& job : jobs_at(problem_, layer)) {
      prepend(job, labels_[layer + job.num_layers], one);
      merge(all, one, merged);
      all.swap(merged);
    }
    thin_to_limit(layer);
    all.shrink_to_fit();
  }

  void thin_to_limit(int layer) {
    MixLabels& all = labels_[layer];
    while (all.size() > max_labels_) gap_ += thin(all, &MixLabel::time);
  }

  std::vector<int> options_of(MixLabel label) const {
    std::vector<int> options;
    std::size_t layer = 0;
    while (layer < problem_.list_of_layer.size()) {
      options.push_back(label.option);
      layer += problem_.lists[problem_.list_of_layer[layer]][label.option].num_layers;
      label = labels_[layer][label.rest];
    }
    return options;
  }

  const MixProblem& problem_;
  std::size_t max_labels_;
  const std::function<bool()>& stop_;
  std::vector<MixLabels> labels_;  // by the first layer that they cover
  std::int64_t gap_ = 0;
};

}  // namespace

MixFront mix_layers(const MixProblem& problem, std::size_t max_labels,
                    const std::function<bool()>& stop) {
  return Mixer(problem, max_labels, stop).run();
}

Bytes peak_of_mix(const MixProblem& problem, const std::vector<int>& mix) {
  Bytes held;
  Bytes peak = problem.floor;
  int layer = 0;
  for (int option : mix) {
    const MixJob job = make_job(problem, layer, option);
    peak = std::max(peak, held + Bytes{job.transient});
    held += Bytes{job.held};
    layer += job.num_layers;
  }
  return std::max(peak, held + problem.head);
}

LayerMix in_readable_order(const MixProblem& problem, const LayerMix& mix) {
  LayerMix ordered = mix;
  int first_layer = 0;
  for (auto run = ordered.options.begin(); run != ordered.options.end();) {
    const int list = problem.list_of_layer[first_layer];
    std::vector<MixJob> jobs;
    auto end = run;
    int layer = first_layer;
    while (end != ordered.options.end() && problem.list_of_layer[layer] == list) {
      const bool reaches_out = !problem.lists[list][*end].covers.empty();
      if (reaches_out && !jobs.empty()) break;
      jobs.push_back(make_job(problem, layer, *end++));
      layer += jobs.back().num_layers;
      if (reaches_out || layer == static_cast<int>(problem.list_of_layer.size())) break;
    }
    order_jobs(problem, first_layer, jobs);
    std::transform(jobs.begin(), jobs.end(), run, [](const MixJob& job) { return job.option; });
    run = end;
    first_layer = layer;
  }
  ordered.peak = peak_of_mix(problem, ordered.options);
  return ordered.peak <= mix.peak ? ordered : mix;
}

}  // namespace rematch
