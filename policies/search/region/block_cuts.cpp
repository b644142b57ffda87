#include "policies/search/region/block_cuts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "policies/base/choice_lists.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

// A cut of the first part of a block, with the sums of its pieces' figures.
struct CutLabel {
  Bytes held;
  Bytes transient;
  nanoseconds time{};
  // These three counts break ties: the lower count is better.
  std::int64_t num_recomputed = 0;
  int num_regions = 0;
  int num_outside = 0;  // number of ops outside all regions
  OptionalIndex last;   // index into CutProgram::chosen_
};

// Drops a label if an earlier label is slower by at most `slack`, and neither its held bytes nor
// its transient is higher.
void keep_undominated(std::vector<CutLabel>& labels, nanoseconds slack) {
  const auto rank = [](const CutLabel& label) {
    return std::tie(label.held, label.time, label.transient, label.num_recomputed,
                    label.num_regions, label.num_outside);
  };
  std::sort(labels.begin(), labels.end(),
            [&](const CutLabel& a, const CutLabel& b) { return rank(a) < rank(b); });
  // for each time, the transient of the label with this time; as times increase, transients
  // decrease
  std::map<nanoseconds, Bytes> lowest;
  std::size_t kept = 0;
  for (const CutLabel& label : labels) {
    const auto slower = lowest.upper_bound(label.time + slack);
    if (slower != lowest.begin() && std::prev(slower)->second <= label.transient) continue;
    auto worse = lowest.lower_bound(label.time);
    while (worse != lowest.end() && worse->second >= label.transient) worse = lowest.erase(worse);
    lowest[label.time] = label.transient;
    labels[kept++] = label;
  }
  labels.resize(kept);
}

// Note [Cuts as a walk along the block] A cut divides a block into pieces: regions, and the ops
// between two regions, which autograd manages. Several pieces may hold the same storage, but only
// one of them counts its bytes: see Note [Who pays for a storage]. The figures of a piece therefore
// depend on the storages that earlier pieces have counted. Two labels that end at the same op are
// compared only if the same storages have been counted. Few such states exist, because few values
// are alive at any op boundary of a block.
class CutProgram {
 public:
  CutProgram(SpanPricer& pricer, const std::vector<RegionCandidate>& candidates)
      : candidates_(candidates), tally_(pricer) {
    const int end = pricer.whole().end;
    places_[0];
    places_[end];
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      places_[candidates[i].range.first].starting.push_back(static_cast<int>(i));
      places_[candidates[i].range.end];
    }
    for (auto& [op, place] : places_) {
      if (op < end) place.open = input_storages(pricer.graph({op, end}));
    }
  }

  // Returns all undominated cuts, or an empty list if the search was stopped.
  std::vector<SpanOption> run(nanoseconds slack, const std::function<bool()>& stop) {
    Place& start = places_.begin()->second;
    const Bytes shared = tally_.shared().held;
    start.behind_region[tally_.paid()] = {{shared, shared}};
    for (auto here = places_.begin(); here != std::prev(places_.end()); ++here) {
      if (stop && stop()) return {};
      leave_to_autograd(here);
      open_regions(here->second);
      here->second = {};
    }
    Place& end = places_.rbegin()->second;
    std::vector<CutLabel> found;
    for (auto* states : {&end.behind_region, &end.behind_autograd}) {
      for (auto& [paid, labels] : *states) found.insert(found.end(), labels.begin(), labels.end());
    }
    keep_undominated(found, slack);
    std::vector<SpanOption> options;
    for (const CutLabel& label : found) options.push_back(to_option(label));
    return options;
  }

 private:
  using Paid = std::vector<StorageId>;
  using States = std::map<Paid, std::vector<CutLabel>>;
  struct Place {
    std::vector<int> starting;  // indices of the candidates that start here
    // storages that are made before this op and may be held by a later piece; ascending
    Paid open;
    States behind_region;  // labels whose last piece is a region, or that do not have a piece yet
    States behind_autograd;
  };
  using Places = std::map<int, Place>;

  // Adds one piece to every label of `states` and appends the results to `to`. `num_outside` is 0
  // for a region, and otherwise the number of ops. `last(label)` returns CutLabel::last of the new
  // label.
  template <class AddPiece, class Last>
  void go_on(const States& states, const Paid& open, States& to, int num_outside,
             const AddPiece& add_piece, const Last& last) {
    for (const auto& [paid, labels] : states) {
      tally_.set_paid(paid);
      const PieceFigures piece = add_piece();
      Paid still_open;
      std::set_intersection(tally_.paid().begin(), tally_.paid().end(), open.begin(), open.end(),
                            std::back_inserter(still_open));
      std::vector<CutLabel>& list = to[std::move(still_open)];
      for (const CutLabel& label : labels) {
        list.push_back({label.held + piece.held,
                        std::max(label.transient, label.held + piece.transient),
                        label.time + piece.recompute, label.num_recomputed + piece.num_recomputed,
                        label.num_regions + (num_outside == 0 ? 1 : 0),
                        label.num_outside + num_outside, last(label)});
      }
    }
  }

  // Adds a piece that autograd manages, once for each possible end: every op where a region may
  // start, and the end of the block.
  void leave_to_autograd(Places::iterator here) {
    tidy(here->second.behind_region);
    for (auto there = std::next(here); there != places_.end(); ++there) {
      const bool is_end = std::next(there) == places_.end();
      if (!is_end && there->second.starting.empty()) continue;
      go_on(
          here->second.behind_region, there->second.open, there->second.behind_autograd,
          there->first - here->first,
          [&] {
            return tally_.add_unmanaged({here->first, there->first});
          },
          [](const CutLabel& label) { return label.last; });
    }
  }

  void open_regions(Place& here) {
    tidy(here.behind_autograd);
    for (const int index : here.starting) {
      const RegionCandidate& candidate = candidates_[static_cast<std::size_t>(index)];
      Place& there = places_.at(candidate.range.end);
      for (const RegionOption& option : candidate.options) {
        for (const States* states : {&here.behind_region, &here.behind_autograd}) {
          go_on(
              *states, there.open, there.behind_region, 0,
              [&] { return tally_.add_region(option); },
              [&](const CutLabel& label) { return chosen_.add(label.last, &option); });
        }
      }
    }
  }

  static void tidy(States& states) {
    for (auto& [paid, labels] : states) keep_undominated(labels, {});
  }

  SpanOption to_option(const CutLabel& label) const {
    SpanOption option;
    option.figures.held = label.held;
    option.figures.transient = label.transient;
    option.figures.time = label.time;
    for (const RegionOption* chosen : chosen_.list(label.last)) {
      option.regions.push_back({chosen->range, chosen->point.saves});
    }
    return option;
  }

  const std::vector<RegionCandidate>& candidates_;
  SpanTally tally_;
  Places places_;
  ChoiceLists<const RegionOption*> chosen_;  // the regions that each label has chosen
};

}  // namespace

std::vector<SpanOption> cut_block(SpanPricer& pricer,
                                  const std::vector<RegionCandidate>& candidates, nanoseconds slack,
                                  const std::function<bool()>& stop) {
  std::vector<SpanOption> options = CutProgram(pricer, candidates).run(slack, stop);
  if (options.empty()) options = CutProgram(pricer, {}).run(slack, {});
  for (SpanOption& option : options) option.figures.transient -= pricer.born();
  return options;
}

}  // namespace rematch
