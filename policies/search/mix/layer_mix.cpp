#include "policies/search/mix/layer_mix.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "policies/search/mix/mix_jobs.h"
#include "policies/search/region/thin.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

// A partial mix: the peak and time of all layers from a certain layer on.
struct MixLabel {
  std::int64_t peak = 0;
  std::int64_t time = 0;
  std::int32_t option = 0;
  std::int32_t rest = 0;  // index of the partial mix of the layers after this option's layers
};

// The maximum number of partial mixes per layer after a stop request. The remaining layers then
// take less than a millisecond each.
constexpr std::size_t kLabelsOnceStopped = 64;

using MixLabels = std::vector<MixLabel>;  // sorted by ascending peak; times strictly descend

// A job and the partial mixes of all layers after its own layers. `rest` is not empty.
struct PlacedJob {
  MixJob job;
  const MixLabels* rest;
};

// the number of labels that are tested together before they are tested one by one
constexpr std::size_t kBlock = 64;
constexpr std::size_t kMaxBuckets = std::size_t{1} << 19;

// Rejects dominated labels early. Combining jobs with labels gives hundreds of millions of new
// labels, and nearly all of them are dominated.
//
// Note [How labels are sifted] Peaks are divided into buckets of equal width. A first pass over a
// few good jobs finds the shortest time in each bucket. A label is dominated if it is slower than
// the shortest time in all lower buckets. Whole runs of labels are tested at once, by the lowest
// peak and the shortest time in the run.
class Sieve {
 public:
  Sieve(std::int64_t lowest, std::int64_t highest, std::size_t num_labels) : lowest_(lowest) {
    const std::size_t wanted = std::min(num_labels, kMaxBuckets);
    while (bucket_of(highest) >= wanted) ++shift_;
    least_time_.assign(bucket_of(highest) + 2, std::numeric_limits<std::int64_t>::max());
  }

  // The first pass calls add() with the labels of the good jobs, and then close() once.
  void add(std::int64_t peak, std::int64_t time) {
    std::int64_t& least = least_time_[bucket_of(peak) + 1];
    least = std::min(least, time);
  }
  void close() {
    for (std::size_t i = 1; i < least_time_.size(); ++i) {
      least_time_[i] = std::min(least_time_[i], least_time_[i - 1]);
    }
  }

  bool stops(std::int64_t peak, std::int64_t time) const {
    return least_time_[bucket_of(peak)] < time;
  }

 private:
  std::size_t bucket_of(std::int64_t peak) const {
    return static_cast<std::size_t>((peak - lowest_) >> shift_);
  }

  std::int64_t lowest_;
  int shift_ = 0;
  // indexed by bucket: the shortest time in all lower buckets
  std::vector<std::int64_t> least_time_;
};

// Sorted runs of labels, stored one after another. Merges neighbouring runs of similar length, so
// that dominated labels are dropped early.
class Runs {
 public:
  void begin_run() {
    while (begins_.size() > 1 && length_before_last() < 2 * length_of_last()) merge_last_two();
    begins_.push_back(labels_.size());
  }
  void push_back(const MixLabel& label) { labels_.push_back(label); }

  // Returns the undominated labels of all runs as a single run, and clears this object. Of equal
  // labels, keeps the first.
  MixLabels take() {
    while (begins_.size() > 1) merge_last_two();
    MixLabels merged(labels_.begin(), labels_.end());
    labels_.clear();
    begins_.clear();
    return merged;
  }

 private:
  std::size_t length_of_last() const { return labels_.size() - begins_.back(); }
  std::size_t length_before_last() const { return begins_.back() - begins_[begins_.size() - 2]; }

  void merge_last_two() {
    const std::size_t middle = begins_.back();
    begins_.pop_back();
    const std::size_t begin = begins_.back();
    merged_.clear();
    std::size_t left = begin;
    std::size_t right = middle;
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    while (left != middle || right != labels_.size()) {
      const bool takes_left =
          right == labels_.size() ||
          (left != middle && std::tie(labels_[left].peak, labels_[left].time) <=
                                 std::tie(labels_[right].peak, labels_[right].time));
      const MixLabel& label = labels_[takes_left ? left++ : right++];
      if (label.time >= best) continue;
      best = label.time;
      merged_.push_back(label);
    }
    labels_.resize(begin);
    labels_.insert(labels_.end(), merged_.begin(), merged_.end());
  }

  MixLabels labels_;
  std::vector<std::size_t> begins_;
  MixLabels merged_;
};

// Combines a job with each partial mix in `rest`. Calls take(peak, partial mix) for each result.
template <class Take>
void prepend(const MixJob& job, const MixLabels& rest, const Take& take) {
  const auto first_above = std::partition_point(
      rest.begin(), rest.end(),
      [&](const MixLabel& label) { return label.peak + job.held <= job.transient; });
  if (first_above != rest.begin()) take(job.transient, first_above - 1);
  for (auto label = first_above; label != rest.end(); ++label) take(label->peak + job.held, label);
}

// Combines a job with each partial mix in `rest`. Adds the results to `passed`, except those that
// the sieve rejects.
void sift(const MixJob& job, const MixLabels& rest, const Sieve& sieve, Runs& passed) {
  passed.begin_run();
  const auto take = [&](std::int64_t peak, MixLabels::const_iterator label) {
    const std::int64_t time = label->time + job.time;
    if (sieve.stops(peak, time)) return;
    passed.push_back({peak, time, job.option, static_cast<std::int32_t>(label - rest.begin())});
  };
  const auto first_above = std::partition_point(
      rest.begin(), rest.end(),
      [&](const MixLabel& label) { return label.peak + job.held <= job.transient; });
  if (first_above != rest.begin()) take(job.transient, first_above - 1);
  for (auto block = first_above; block != rest.end();) {
    const auto left = static_cast<std::size_t>(rest.end() - block);
    const auto end = block + static_cast<std::ptrdiff_t>(std::min(kBlock, left));
    if (!sieve.stops(block->peak + job.held, (end - 1)->time + job.time)) {
      for (auto label = block; label != end; ++label) take(label->peak + job.held, label);
    }
    block = end;
  }
}

class Mixer {
 public:
  Mixer(const MixProblem& problem, std::size_t max_labels, const MixWatch& watch)
      : problem_(problem), max_labels_(std::max<std::size_t>(max_labels, 2)), watch_(watch) {}

  MixFront run() {
    const int num_layers = static_cast<int>(problem_.list_of_layer.size());
    labels_.resize(num_layers + 1);
    // The plan's last region offloads nothing, so the bytes offloaded before the end must be 0.
    labels_[num_layers][0] = {{problem_.head.count, 0, 0, 0}};
    for (int layer = num_layers - 1; layer >= 0; --layer) {
      add_layer(layer);
      if (watch_.on_layer) watch_.on_layer(num_layers - layer, num_layers);
    }
    MixFront front;
    front.time_gap = nanoseconds(gap_);
    for (MixLabel& label : labels_[0][0]) {
      // `floor` is a bound for the whole step, so it is applied only when all layers have been
      // combined.
      label.peak = std::max(label.peak, problem_.floor.count);
      if (!front.points.empty() && front.points.back().peak.count == label.peak) {
        front.points.pop_back();
      }
      front.points.push_back({Bytes{label.peak}, nanoseconds(label.time), options_of(label)});
    }
    return front;
  }

 private:
  // The labels of one layer, grouped by the bytes that earlier layers have offloaded.
  using Labels = std::map<std::int64_t, MixLabels>;

  void add_layer(int layer) {
    if (watch_.stop && watch_.stop()) {
      max_labels_ = std::min(max_labels_, kLabelsOnceStopped);
      thin_to_limit(labels_[layer + 1]);
    }
    const std::vector<MixJob> jobs = jobs_at(problem_, layer);
    for (const std::int64_t before : offloaded_before(layer)) {
      const std::vector<PlacedJob> placed = place(layer, before, jobs);
      if (placed.empty()) continue;
      const Sieve sieve = sieve_for(layer, placed);
      for (const PlacedJob& each : placed) sift(each.job, *each.rest, sieve, passed_);
      labels_[layer][before] = passed_.take();
    }
    thin_to_limit(labels_[layer]);
  }

  // Returns the possible values of `before` (see mix_jobs.h) for a job that starts at `layer`.
  std::set<std::int64_t> offloaded_before(int layer) const {
    std::set<std::int64_t> before = {0};
    if (layer == 0) return before;
    for (const std::vector<LayerOption>& list : problem_.lists) {
      for (const LayerOption& option : list) before.insert(option.offloaded.count);
    }
    return before;
  }

  std::vector<PlacedJob> place(int layer, std::int64_t before,
                               const std::vector<MixJob>& jobs) const {
    std::vector<PlacedJob> placed;
    for (const MixJob& job : jobs) {
      const Labels& behind = labels_[layer + job.num_layers];
      const auto rest = behind.find(offloaded_behind(job, before));
      if (rest != behind.end())
        placed.push_back({with_offloaded_before(job, before), &rest->second});
    }
    return placed;
  }

  // Makes a sieve that rejects dominated labels of a layer. A job is good if its option is on the
  // convex hull of the layer's options. If most jobs are good, a first pass saves no time, so the
  // sieve rejects nothing.
  Sieve sieve_for(int layer, const std::vector<PlacedJob>& jobs) const {
    const std::vector<std::size_t> good =
        hull_options(problem_.lists[problem_.list_of_layer[layer]]);
    const auto is_good = [&](const MixJob& job) {
      return std::binary_search(good.begin(), good.end(), static_cast<std::size_t>(job.option));
    };
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
    std::int64_t highest = 0;
    std::size_t num_labels = 0;
    std::size_t num_good = 0;
    for (const auto& [job, rest] : jobs) {
      lowest = std::min(lowest, std::max(job.transient, rest->front().peak + job.held));
      highest = std::max({highest, job.transient, rest->back().peak + job.held});
      num_labels += rest->size();
      if (is_good(job)) num_good += rest->size();
    }
    if (2 * num_good > num_labels) return Sieve(lowest, highest, 1);
    Sieve sieve(lowest, highest, num_labels);
    for (const auto& placed : jobs) {
      const MixJob& job = placed.job;
      if (!is_good(job)) continue;
      prepend(job, *placed.rest, [&](std::int64_t peak, MixLabels::const_iterator label) {
        sieve.add(peak, label->time + job.time);
      });
    }
    sieve.close();
    return sieve;
  }

  void thin_to_limit(Labels& all) {
    std::int64_t most = 0;
    for (auto& [before, labels] : all) {
      std::int64_t gap = 0;
      while (labels.size() > max_labels_ / all.size()) gap += thin(labels, &MixLabel::time);
      most = std::max(most, gap);
    }
    gap_ += most;
  }

  std::vector<int> options_of(MixLabel label) const {
    std::vector<int> options;
    std::int64_t before = 0;
    for (int layer = 0; layer < static_cast<int>(problem_.list_of_layer.size());) {
      const MixJob job = make_job(problem_, layer, label.option);
      options.push_back(label.option);
      before = offloaded_behind(job, before);
      layer += job.num_layers;
      label = labels_[layer].at(before)[label.rest];
    }
    return options;
  }

  const MixProblem& problem_;
  std::size_t max_labels_;
  const MixWatch& watch_;
  std::vector<Labels> labels_;  // indexed by the first layer that the labels cover
  Runs passed_;
  std::int64_t gap_ = 0;
};

}  // namespace

MixFront mix_layers(const MixProblem& problem, std::size_t max_labels, const MixWatch& watch) {
  return Mixer(problem, max_labels, watch).run();
}

std::optional<Bytes> peak_of_mix(const MixProblem& problem, const std::vector<int>& mix) {
  Bytes held;
  Bytes peak = problem.floor;
  int layer = 0;
  std::int64_t before = 0;
  for (int option : mix) {
    const MixJob job = with_offloaded_before(make_job(problem, layer, option), before);
    before = offloaded_behind(job, before);
    peak = std::max(peak, held + Bytes{job.transient});
    held += Bytes{job.held};
    layer += job.num_layers;
  }
  if (before > 0) return std::nullopt;
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
  const std::optional<Bytes> peak = peak_of_mix(problem, ordered.options);
  if (!peak || *peak > mix.peak) return mix;
  ordered.peak = *peak;
  return ordered;
}

}  // namespace rematch
