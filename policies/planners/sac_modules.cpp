#include "policies/planners/sac_modules.h"

#include <algorithm>
#include <queue>

namespace rematch {
namespace {

// The big-M constant of PyTorch's mixed-integer program, in milliseconds. It also limits a module's
// recompute time.
constexpr double kMaxMilliseconds = 100;
constexpr double kTolerance = 1e-9;
// The limit on nodes of the search tree, in place of PyTorch's limit of 180 seconds. Most models
// need a few hundred nodes.
constexpr int kMaxNodes = 100'000;

// A corner of a cost curve, which gives the least cost of freeing a number of bytes. The curve is
// convex, and flat before its first corner.
struct Corner {
  double freed = 0;
  double cost = 0;
};
using Curve = std::vector<Corner>;

double value_at(const Curve& curve, double freed) {
  if (freed <= curve.front().freed) return curve.front().cost;
  for (std::size_t i = 1; i < curve.size(); ++i) {
    if (freed > curve[i].freed) continue;
    const Corner& a = curve[i - 1];
    const Corner& b = curve[i];
    return a.cost + (b.cost - a.cost) * (freed - a.freed) / (b.freed - a.freed);
  }
  return curve.back().cost;
}

Curve lower_hull(const Curve& corners) {
  Curve hull;
  for (const Corner& corner : corners) {
    while (hull.size() >= 2) {
      const Corner& a = hull[hull.size() - 2];
      const Corner& b = hull.back();
      if ((b.cost - a.cost) * (corner.freed - a.freed) <
          (corner.cost - a.cost) * (b.freed - a.freed)) {
        break;
      }
      hull.pop_back();
    }
    hull.push_back(corner);
  }
  return hull;
}

// Returns the cost curve of a module that is checkpointed. Returns an empty curve if the module
// cannot be checkpointed.
Curve curve_of(const SacModule& module) {
  const auto all = static_cast<double>(module.all_bytes);
  const auto kept = static_cast<double>(module.kept_bytes);
  if (module.is_leaf || all <= 0) return {};
  const double least = (all - kept) / all;
  const auto cost = [&](double share) {
    double most = 0;
    for (const auto& line : module.lines) {
      most = std::max(most, line.slope * share + line.intercept);
    }
    return module.runtime_ms * most;
  };
  std::vector<double> shares = {least, 1};
  const auto add_crossing = [&](double slope, double intercept) {
    if (slope != 0) shares.push_back(-intercept / slope);
  };
  for (const auto& a : module.lines) {
    add_crossing(a.slope, a.intercept);
    if (module.runtime_ms > 0) {
      add_crossing(a.slope, a.intercept - kMaxMilliseconds / module.runtime_ms);
    }
    for (const auto& b : module.lines) add_crossing(a.slope - b.slope, a.intercept - b.intercept);
  }
  std::sort(shares.begin(), shares.end());
  Curve curve;
  for (double share : shares) {
    if (share < least || share > 1 || cost(share) > kMaxMilliseconds * (1 + kTolerance)) continue;
    const Corner corner = {all * share - (all - kept), cost(share)};
    while (!curve.empty() && curve.back().cost >= corner.cost) curve.pop_back();
    if (curve.empty() || corner.freed > curve.back().freed) curve.push_back(corner);
  }
  return curve;
}

// A constraint: the number of bytes that must be freed before a module runs backward. `post_order`
// is the module's place in post-order.
struct Need {
  int post_order = 0;
  double bytes = 0;
};

class SacSearch {
 public:
  SacSearch(const SacModel& model, double budget, double gap_ratio)
      : model_(model), gap_ratio_(gap_ratio), choices_(model.modules.size(), Choice::kOpen) {
    for (const SacModule& module : model.modules) {
      checkpointed_.push_back(curve_of(module));
      Curve open = {{0, 0}};
      for (const Corner& corner : checkpointed_.back()) {
        if (corner.freed > 0) open.push_back(corner);
      }
      open_.push_back(lower_hull(open));
      const double shared =
          static_cast<double>(model.parameter_bytes + module.born_bytes) / model.world_size;
      needs_.push_back(
          {module.post_order,
           static_cast<double>(module.total_kept_bytes + module.gradient_bytes) + shared - budget});
    }
    std::sort(needs_.begin(), needs_.end(),
              [](const Need& a, const Need& b) { return a.post_order < b.post_order; });
    for (std::size_t i = 0; i < model.modules.size(); ++i) {
      if (checkpointed_[i].empty()) choices_[i] = Choice::kOff;
    }
  }

  std::optional<SacSolution> run() {
    branch();
    if (best_) best_->is_proven = num_nodes_ < kMaxNodes;
    return best_;
  }

 private:
  enum class Choice : std::uint8_t { kOpen, kOff, kOn };

  struct Relaxed {
    std::vector<double> freed;  // indexed by module
    double cost = 0;
  };

  // The next segment of a module's cost curve. The queue returns the cheapest segment first.
  struct Offer {
    double slope = 0;
    std::size_t module = 0;
    std::size_t corner = 0;  // index of the corner where the segment ends
    bool operator<(const Offer& other) const { return slope > other.slope; }
  };

  const Curve& curve(std::size_t module) const {
    return choices_[module] == Choice::kOn ? checkpointed_[module] : open_[module];
  }

  static void add_offer(std::priority_queue<Offer>& offers, const Curve& curve, std::size_t module,
                        std::size_t corner) {
    if (corner >= curve.size()) return;
    const Corner& a = curve[corner - 1];
    const Corner& b = curve[corner];
    offers.push({(b.cost - a.cost) / (b.freed - a.freed), module, corner});
  }

  // Solves the relaxed problem, in which costs are convex. Returns the bytes that each module
  // frees, or nullopt if the modules cannot free enough. For each constraint in post-order, frees
  // bytes in the cheapest modules before it.
  std::optional<Relaxed> relax() const {
    Relaxed relaxed;
    relaxed.freed.assign(model_.modules.size(), 0);
    std::vector<bool> is_offered(model_.modules.size(), false);
    std::priority_queue<Offer> offers;
    double total = 0;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      if (choices_[i] == Choice::kOn) relaxed.cost += curve(i).front().cost;
    }
    for (const Need& need : needs_) {
      for (std::size_t i = 0; i < choices_.size(); ++i) {
        if (is_offered[i] || choices_[i] == Choice::kOff) continue;
        if (model_.modules[i].post_order >= need.post_order) continue;
        is_offered[i] = true;
        relaxed.freed[i] = curve(i).front().freed;
        total += relaxed.freed[i];
        add_offer(offers, curve(i), i, 1);
      }
      while (total < need.bytes - kTolerance && !offers.empty()) {
        const Offer offer = offers.top();
        const double left = curve(offer.module)[offer.corner].freed - relaxed.freed[offer.module];
        const double taken = std::min(left, need.bytes - total);
        relaxed.freed[offer.module] += taken;
        relaxed.cost += taken * offer.slope;
        total += taken;
        if (taken < left) break;
        offers.pop();
        add_offer(offers, curve(offer.module), offer.module, offer.corner + 1);
      }
      if (total < need.bytes - kTolerance * std::max(1.0, need.bytes)) return std::nullopt;
    }
    return relaxed;
  }

  // Returns whether one of the two modules is inside the other. Compares names, as PyTorch does.
  bool is_nested(std::size_t a, std::size_t b) const {
    const std::string& first = model_.modules[a].name;
    const std::string& second = model_.modules[b].name;
    return first.find(second + ".") != std::string::npos ||
           second.find(first + ".") != std::string::npos;
  }

  // Returns the undecided module whose decision changes the cost most, or nullopt if all modules
  // are decided. Stores the rounded choices in `solution`. Clears solution.discards if these
  // choices checkpoint a module inside a checkpointed module.
  std::optional<std::size_t> undecided(const Relaxed& relaxed, SacSolution& solution) const {
    std::optional<std::size_t> worst;
    double most = kTolerance;
    std::vector<std::size_t> used;
    solution.discards.assign(choices_.size(), std::nullopt);
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      if (choices_[i] == Choice::kOff) continue;
      if (choices_[i] == Choice::kOpen && relaxed.freed[i] <= 0) continue;
      const double cost = value_at(checkpointed_[i], relaxed.freed[i]);
      const double missing = cost - value_at(curve(i), relaxed.freed[i]);
      if (missing > most) {
        most = missing;
        worst = i;
      }
      solution.recompute_ms += cost;
      const SacModule& module = model_.modules[i];
      solution.discards[i] =
          (relaxed.freed[i] + static_cast<double>(module.all_bytes - module.kept_bytes)) /
          static_cast<double>(module.all_bytes);
      used.push_back(i);
    }
    for (std::size_t i = 0; i < used.size(); ++i) {
      for (std::size_t j = i + 1; j < used.size(); ++j) {
        if (!is_nested(used[i], used[j])) continue;
        solution.discards.clear();
        if (!worst) worst = choices_[used[i]] == Choice::kOpen ? used[i] : used[j];
      }
    }
    return worst;
  }

  void branch() {
    if (++num_nodes_ > kMaxNodes) return;
    const std::optional<Relaxed> relaxed = relax();
    if (!relaxed) return;
    if (best_ && relaxed->cost >= best_->recompute_ms * (1 - gap_ratio_) - kTolerance) return;
    SacSolution solution;
    const std::optional<std::size_t> module = undecided(*relaxed, solution);
    if (!solution.discards.empty() && (!best_ || solution.recompute_ms < best_->recompute_ms)) {
      best_ = solution;
    }
    if (!module) return;
    const std::vector<Choice> before = choices_;
    choices_[*module] = Choice::kOn;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      if (i != *module && is_nested(i, *module)) choices_[i] = Choice::kOff;
    }
    branch();
    choices_ = before;
    choices_[*module] = Choice::kOff;
    branch();
    choices_ = before;
  }

  const SacModel& model_;
  double gap_ratio_;
  std::vector<Curve> checkpointed_;  // indexed by module
  // indexed by module: convex lower hull of the curve and the point "not checkpointed"
  std::vector<Curve> open_;
  std::vector<Need> needs_;  // sorted by post-order
  std::vector<Choice> choices_;
  std::optional<SacSolution> best_;
  int num_nodes_ = 0;
};

}  // namespace

std::optional<SacSolution> sac_discards(const SacModel& model, double budget_bytes,
                                        double gap_ratio) {
  return SacSearch(model, budget_bytes, gap_ratio).run();
}

}  // namespace rematch
