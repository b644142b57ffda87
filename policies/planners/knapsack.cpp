#include "policies/planners/knapsack.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "policies/base/choice_lists.h"

namespace rematch {
namespace {

// Rounds like Python's round(), which rounds halves to the even neighbour. In the default rounding
// mode, nearbyint() does the same.
std::int64_t quantized(double memory) {
  constexpr double kSteps = 10'000;
  return static_cast<std::int64_t>(std::nearbyint(memory * kSteps));
}

// The total memory and runtime of a set of items.
struct Label {
  double memory = 0;
  double runtime = 0;
  OptionalIndex last;  // the items of the set, as an index into the ChoiceLists
};

// Returns the sets in `labels`, and each of these sets with `item` added. Drops sets above the
// budget and dominated sets. The result is sorted by ascending memory and ascending runtime.
std::vector<Label> with_item(const std::vector<Label>& labels, const KnapsackItem& item, int index,
                             double budget, ChoiceLists<int>& chosen) {
  std::vector<Label> merged;
  merged.reserve(2 * labels.size());
  const auto is_better = [&](const Label& label) {
    return merged.empty() || label.runtime > merged.back().runtime;
  };
  const auto keep = [&](const Label& label) {
    if (is_better(label)) merged.push_back(label);
  };
  const auto added = [&](const Label& label) {
    return Label{label.memory + item.memory, label.runtime + item.runtime, label.last};
  };
  std::size_t with = 0;
  std::size_t without = 0;
  while (with < labels.size() || without < labels.size()) {
    const bool can_add = with < labels.size() && added(labels[with]).memory <= budget;
    if (!can_add && without == labels.size()) break;
    if (!can_add ||
        (without < labels.size() && labels[without].memory <= added(labels[with]).memory)) {
      keep(labels[without++]);
      continue;
    }
    Label label = added(labels[with++]);
    if (!is_better(label)) continue;
    label.last = chosen.add(label.last, index);
    keep(label);
  }
  return merged;
}

// The items, sorted by runtime per memory, with prefix sums of memory and runtime.
class Order {
 public:
  explicit Order(const std::vector<KnapsackItem>& items) : items_(items), places_(items.size()) {
    std::iota(places_.begin(), places_.end(), 0);
    const auto worth = [&](int index) {
      const KnapsackItem& item = items[index];
      return item.memory > 0 ? item.runtime / item.memory : std::numeric_limits<double>::infinity();
    };
    std::stable_sort(places_.begin(), places_.end(),
                     [&](int a, int b) { return worth(a) > worth(b); });
    sums_.emplace_back();
    for (int index : places_) {
      sums_.push_back(
          {sums_.back().memory + items[index].memory, sums_.back().runtime + items[index].runtime});
    }
  }

  int operator[](std::size_t place) const { return places_[place]; }

  // Returns an upper bound of the runtime that the items from index `place` on can save within
  // `memory`. Treats items as divisible.
  double bound(std::size_t place, double memory) const {
    const double full = sums_[place].memory + memory;
    const auto after =
        std::upper_bound(sums_.begin() + static_cast<std::ptrdiff_t>(place), sums_.end(), full,
                         [](double limit, const KnapsackItem& sum) { return limit < sum.memory; });
    const KnapsackItem& fitting = *(after - 1);
    double runtime = fitting.runtime - sums_[place].runtime;
    if (after != sums_.end()) {
      const KnapsackItem& next =
          items_[places_[static_cast<std::size_t>(after - sums_.begin()) - 1]];
      runtime += next.runtime * (full - fitting.memory) / next.memory;
    }
    return runtime;
  }

 private:
  const std::vector<KnapsackItem>& items_;
  std::vector<int> places_;
  std::vector<KnapsackItem> sums_;
};

// Takes items in the given order, and skips items that no longer fit in the budget. Returns the
// runtime saved, which the search uses as a lower bound. Adds memory in the same order as
// with_item(), so that both round equally.
double greedy_runtime(const std::vector<KnapsackItem>& items, const Order& order, double budget) {
  KnapsackItem sum;
  for (std::size_t place = 0; place < items.size(); ++place) {
    const KnapsackItem& item = items[order[place]];
    if (sum.memory + item.memory > budget) continue;
    sum.memory += item.memory;
    sum.runtime += item.runtime;
  }
  return sum.runtime;
}

}  // namespace

std::vector<int> dp_knapsack(const std::vector<KnapsackItem>& items, double budget) {
  const std::int64_t capacity = quantized(budget);
  const auto width = static_cast<std::size_t>(capacity) + 1;
  std::vector<std::vector<float>> best = {std::vector<float>(width, 0.0F)};
  for (const KnapsackItem& item : items) {
    const std::vector<float>& before = best.back();
    std::vector<float> after = before;
    const auto runtime = static_cast<float>(item.runtime);
    const auto memory = static_cast<std::size_t>(quantized(item.memory));
    for (std::size_t held = memory; held < width; ++held) {
      const float saved = before[held - memory] + runtime;
      after[held] = memory == 0 ? saved : std::max(before[held], saved);
    }
    best.push_back(std::move(after));
  }
  std::vector<int> saved;
  std::size_t held = width - 1;
  for (std::size_t i = items.size(); i > 0; --i) {
    if (best[i][held] == best[i - 1][held]) continue;
    saved.push_back(static_cast<int>(i) - 1);
    held -= static_cast<std::size_t>(quantized(items[i - 1].memory));
  }
  std::reverse(saved.begin(), saved.end());
  return saved;
}

std::vector<int> best_knapsack(const std::vector<KnapsackItem>& items, double budget) {
  constexpr double kRounding = 1e-9;
  const Order order(items);
  const double least = greedy_runtime(items, order, budget) * (1 - kRounding);
  std::vector<Label> labels = {{}};
  ChoiceLists<int> chosen;
  for (std::size_t place = 0; place < items.size(); ++place) {
    labels = with_item(labels, items[order[place]], order[place], budget, chosen);
    std::erase_if(labels, [&](const Label& label) {
      return label.runtime + order.bound(place + 1, budget - label.memory) < least;
    });
  }
  std::vector<int> saved = chosen.list(labels.back().last);
  std::sort(saved.begin(), saved.end());
  return saved;
}

}  // namespace rematch
