#include <algorithm>
#include <array>
#include <cstdio>

#include "policies/base/format.h"
#include "reports/render/charts/builders.h"

namespace rematch::chart {
namespace {

// Losses that are bitwise equal in several points.
struct Losses {
  std::vector<std::string> names;  // names of the points
  const std::vector<StepRecord>* steps;

  std::string words() const {
    const std::size_t others = names.size() - 1;
    if (others == 0) return names.front();
    return names.front() + " and " + std::to_string(others) +
           (others == 1 ? " other with the same bits" : " others with the same bits");
  }
};

bool has_same_bits(const std::vector<StepRecord>& a, const std::vector<StepRecord>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const StepRecord& x, const StepRecord& y) { return x.loss_bits == y.loss_bits; });
}

// Groups points with equal losses, in the order of the points.
std::vector<Losses> losses_of(const std::vector<ComparedPoint>& points) {
  std::vector<Losses> all;
  for (const ComparedPoint& compared : points) {
    const std::vector<StepRecord>& steps = compared.point->steps;
    if (steps.empty()) continue;
    const auto same = std::find_if(all.begin(), all.end(), [&](const Losses& other) {
      return has_same_bits(*other.steps, steps);
    });
    if (same == all.end()) {
      all.push_back({{compared.name()}, &steps});
    } else {
      same->names.push_back(compared.name());
    }
  }
  return all;
}

// For each step, the range of the loss over the reference's runs. Absent if a loss is not finite.
struct Band {
  const ComparedPoint& compared;
  std::vector<std::optional<Range>> steps;
  double widest = 0;

  std::size_t num_runs() const { return compared.repeats.size() + 1; }
};

std::optional<Range> range_at(const ComparedPoint& compared, std::size_t step) {
  Range range;
  const auto include = [&](const std::vector<StepRecord>& steps) {
    if (step >= steps.size() || !steps[step].loss) return false;
    range.include(*steps[step].loss);
    return true;
  };
  if (!include(compared.point->steps)) return std::nullopt;
  for (const RepeatRecord* repeat : compared.repeats) {
    if (!include(repeat->steps)) return std::nullopt;
  }
  return range;
}

// Returns the band of the first point that has repeated runs.
std::optional<Band> band_of(const std::vector<ComparedPoint>& points) {
  for (const ComparedPoint& compared : points) {
    const std::size_t num_steps = compared.point->steps.size();
    if (compared.repeats.empty() || num_steps == 0) continue;
    Band band{compared, {}, 0};
    for (std::size_t step = 0; step < num_steps; ++step) {
      band.steps.push_back(range_at(compared, step));
      if (band.steps.back()) band.widest = std::max(band.widest, band.steps.back()->span());
    }
    return band;
  }
  return std::nullopt;
}

std::string words_of(const Band& band) {
  const std::string runs = std::to_string(band.num_runs()) + " runs of " + band.compared.name();
  if (band.widest == 0) return runs + ", which are equal";
  std::array<char, 32> widest{};
  std::snprintf(widest.data(), widest.size(), "%.2g", band.widest);
  return runs + ", which differ by " + widest.data() + " at most";
}

// If there are more curves than hues, all remaining curves get the last hue.
constexpr std::array kHues = {Paint::kBlue,   Paint::kOrange, Paint::kTeal,
                              Paint::kPurple, Paint::kPink,   Paint::kGrey};

Paint hue_of(std::size_t curve) { return kHues.at(std::min(curve, kHues.size() - 1)); }

// Draws the loss at each step minus the loss of `reference`, or the loss itself if `reference` is
// null. Mouse-over hints show the loss itself.
Panel loss_panel(const std::vector<Losses>& all, const std::optional<Band>& band,
                 const std::vector<StepRecord>* reference) {
  const auto offset = [&](std::size_t step) -> std::optional<double> {
    if (reference == nullptr) return 0;
    return step < reference->size() ? (*reference)[step].loss : std::nullopt;
  };
  Panel panel;
  panel.x_title = "Step";
  for (std::size_t index = 0; index < all.size(); ++index) {
    const std::string words = all[index].words();
    panel.curves.push_back({{}, hue_of(index), words});
    for (std::size_t step = 0; step < all[index].steps->size(); ++step) {
      const StepRecord& record = (*all[index].steps)[step];
      Sample sample{record.loss, words + "\nstep " + std::to_string(step) + ": " +
                                     (record.loss ? format_fixed(*record.loss, 6) : "not finite") +
                                     " (" + record.loss_bits + ")"};
      const auto from = offset(step);
      if (sample.y) sample.y = from ? std::optional(*sample.y - *from) : std::nullopt;
      panel.curves.back().samples.push_back(std::move(sample));
    }
  }
  if (!band) return panel;
  std::vector<Position> lower;
  Area area{{}, Paint::kGrid, Paint::kAxis, words_of(*band)};
  // Appends the lower edge in reverse order to the current area, and adds the area to the panel.
  // Called at each gap of the band and at its end.
  const auto flush = [&] {
    area.corners.insert(area.corners.end(), lower.rbegin(), lower.rend());
    if (lower.size() > 1) panel.areas.push_back(area);
    area.corners.clear();
    lower.clear();
  };
  for (std::size_t step = 0; step < band->steps.size(); ++step) {
    if (!band->steps[step]) {
      flush();
      continue;
    }
    // offset() has a value here, because the band contains only finite losses
    const double from = *offset(step);
    const auto x = static_cast<double>(step);
    area.corners.push_back({x, band->steps[step]->high - from});
    lower.push_back({x, band->steps[step]->low - from});
  }
  flush();
  return panel;
}

// A plot is about 300 pixels wide, so finer samples would not be visible.
constexpr std::size_t kMaxSamples = 150;

// Returns the bytes of the first `num_layers` holders. Returns a double, because numbers from a
// file may overflow an integer.
double stacked(const MemoryTimeline& timeline, std::size_t num_layers, std::size_t sample) {
  double sum = 0;
  for (std::size_t layer = 0; layer < num_layers; ++layer) {
    const auto found = timeline.bytes.find(kStackedHolders.at(layer));
    if (found != timeline.bytes.end()) sum += static_cast<double>(found->second[sample]);
  }
  return sum;
}

double total(const MemoryTimeline& timeline, std::size_t sample) {
  return stacked(timeline, kStackedHolders.size(), sample);
}

// Divides the samples into groups and returns the highest sample of each group, which preserves the
// peak.
std::vector<std::size_t> drawn_samples(const MemoryTimeline& timeline) {
  const std::size_t num_samples = timeline.op_index.size();
  const std::size_t num_drawn = std::min(num_samples, kMaxSamples);
  std::vector<std::size_t> chosen;
  for (std::size_t run = 0; run < num_drawn; ++run) {
    std::size_t highest = run * num_samples / num_drawn;
    for (std::size_t at = highest; at < (run + 1) * num_samples / num_drawn; ++at) {
      if (total(timeline, at) > total(timeline, highest)) highest = at;
    }
    chosen.push_back(highest);
  }
  return chosen;
}

constexpr std::array<Paint, kNumPhases> kPhasePaints = {Paint::kBlue, Paint::kOrange, Paint::kTeal,
                                                        Paint::kGrey};

std::vector<Stretch> phases_of(const MemoryTimeline& timeline,
                               const std::vector<std::size_t>& samples) {
  std::vector<Stretch> strip;
  for (const std::size_t sample : samples) {
    const auto x = static_cast<double>(timeline.op_index[sample]);
    const std::string phase(to_string(timeline.phase[sample]));
    if (!strip.empty()) strip.back().to = x;
    if (strip.empty() || strip.back().hint != phase) {
      const auto index = static_cast<std::size_t>(timeline.phase[sample]);
      strip.push_back({x, x, kPhasePaints.at(index), phase});
    }
  }
  return strip;
}

// Returns text such as "peak 38.8 MiB in the backward of blocks.7".
std::string peak_words(const MemoryRecord& memory) {
  if (!memory.peak_allocated) return "peak not measured";
  const std::string words = "peak " + format_bytes(*memory.peak_allocated);
  return memory.peak_phase ? words + " in " + describe_place(memory) : words;
}

const MemoryTimeline* timeline_of(const ComparedPoint& compared) {
  const auto& memory = compared.point->memory;
  const bool has_timeline = memory && memory->timeline && !memory->timeline->op_index.empty() &&
                            !memory->timeline->bytes.empty();
  return has_timeline ? &*memory->timeline : nullptr;
}

Panel memory_panel(const ComparedPoint& compared, const MemoryTimeline& timeline) {
  const MemoryRecord& memory = *compared.point->memory;
  Panel panel{compared.point->policy, compared.schedule, peak_words(memory), compared.hint()};
  panel.x_title = "Ops executed";
  panel.quantity = Quantity::kBytes;
  const std::vector<std::size_t> samples = drawn_samples(timeline);
  const auto at = [&](std::size_t sample, double bytes) {
    return Position{static_cast<double>(timeline.op_index[sample]), bytes};
  };
  // Draws the holders from the top of the stack to the bottom. Each area extends to the bottom of
  // the plot, and covers the lower part of earlier areas.
  for (std::size_t layer = kStackedHolders.size(); layer-- > 0;) {
    if (!timeline.bytes.contains(kStackedHolders.at(layer))) continue;
    const SeriesStyle& style = kHolderStyles.at(layer);
    Area area{{at(samples.front(), 0)}, style.fill, Paint::kClear, style.words};
    for (const std::size_t sample : samples) {
      area.corners.push_back(at(sample, stacked(timeline, layer + 1, sample)));
    }
    area.corners.push_back(at(samples.back(), 0));
    panel.areas.push_back(std::move(area));
  }
  panel.strip = phases_of(timeline, samples);
  const auto is_lower = [&](std::size_t a, std::size_t b) {
    return total(timeline, a) < total(timeline, b);
  };
  const std::size_t peak = *std::max_element(samples.begin(), samples.end(), is_lower);
  panel.peak = {at(peak, total(timeline, peak)), panel.words};
  return panel;
}

}  // namespace

Lines losses(const std::vector<ComparedPoint>& points) {
  Lines chart{"Loss", "Policies with the same bits share one curve."};
  const std::vector<Losses> all = losses_of(points);
  if (all.empty()) return chart;
  const std::optional<Band> band = band_of(points);
  if (band) chart.words += " The band shows how far the reference's own runs differ.";
  for (std::size_t index = 0; index + 1 < kHues.size() && index < all.size(); ++index) {
    chart.legend.push_back({all[index].words(), MarkerKind::kCircle, hue_of(index)});
  }
  if (all.size() > chart.legend.size()) {
    chart.legend.push_back({std::to_string(all.size() - chart.legend.size()) + " other curves",
                            MarkerKind::kCircle, kHues.back()});
  }
  if (band) {
    chart.legend.push_back({words_of(*band), MarkerKind::kSquare, Paint::kGrid, Paint::kAxis});
  }
  chart.panels.push_back(loss_panel(all, band, nullptr));
  chart.panels.back().y_title = "Loss";
  chart.panels.back().height = 190;
  // The differences have their own panel, because they would be invisible on the axis of the
  // losses.
  if (!band || (all.size() == 1 && band->widest == 0)) return chart;
  chart.panels.push_back(loss_panel(all, band, &band->compared.point->steps));
  chart.panels.back().y_title = "Loss minus the loss of " + band->compared.name() + "'s first run";
  return chart;
}

Lines memory_timelines(const std::vector<ComparedPoint>& points) {
  Lines chart{"Memory over one step, by holder",
              "Bytes at op boundaries, all on one scale. The strip below shows the phase: forward "
              "blue, backward green, recompute orange, optimizer grey."};
  chart.num_columns = 3;
  for (std::size_t layer = 0; layer < kStackedHolders.size(); ++layer) {
    const bool is_drawn =
        std::any_of(points.begin(), points.end(), [layer](const ComparedPoint& compared) {
          const MemoryTimeline* timeline = timeline_of(compared);
          return timeline != nullptr && timeline->bytes.contains(kStackedHolders.at(layer));
        });
    if (is_drawn) chart.legend.push_back(key_of(kHolderStyles.at(layer)));
  }
  chart.legend.push_back({"Peak", MarkerKind::kCircle, Paint::kInk});
  double highest = 0;
  for (const ComparedPoint& compared : points) {
    const MemoryTimeline* timeline = timeline_of(compared);
    if (timeline == nullptr) continue;
    chart.panels.push_back(memory_panel(compared, *timeline));
    highest = std::max(highest, chart.panels.back().peak->at.y);
  }
  for (Panel& panel : chart.panels) panel.at_least = highest;
  return chart;
}

}  // namespace rematch::chart
