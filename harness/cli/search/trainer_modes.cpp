#include "harness/cli/search/trainer_modes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "policies/base/format.h"
#include "policies/base/json.h"
#include "policies/base/text.h"
#include "policies/catalogue/resolve.h"
#include "policies/search/front/hypervolume.h"
#include "policies/search/front/point_judge.h"
#include "reports/render/tables/front_table.h"
#include "reports/render/tables/grid.h"

namespace rematch {
namespace {

bool is_faster(const FrontPoint& a, const FrontPoint& b) {
  if (a.step_time != b.step_time) return a.step_time < b.step_time;
  return a.figures.peak < b.figures.peak;
}

// Returns at most `max_modes` modes that no other mode beats in both peak and step time, sorted by
// peak. If more modes qualify, picks modes from the whole range of peaks.
std::vector<const TrainerMode*> modes_worth_having(const std::vector<TrainerMode>& modes,
                                                   std::size_t max_modes) {
  const auto on_plane = [](const TrainerMode* mode) {
    return PlanePoint{mode->point.figures.peak.count, mode->point.step_time.count()};
  };
  std::vector<const TrainerMode*> worth;
  for (const TrainerMode& mode : modes) worth.push_back(&mode);
  worth = undominated(std::move(worth), on_plane);
  std::vector<PlanePoint> plane;
  for (const TrainerMode* mode : worth) plane.push_back(on_plane(mode));
  std::vector<const TrainerMode*> shown;
  for (const std::size_t index : spread_points(plane, max_modes)) shown.push_back(worth[index]);
  return shown;
}

std::string figures_words(const FrontPoint& point) {
  return "peak " + format_bytes(point.figures.peak) + ", step " + format_duration(point.step_time);
}

std::string versions_words(const FilledMode& mode) {
  return mode.entry->versions.empty() ? "" : " (" + std::string(mode.entry->versions) + ")";
}

// Returns the trainer versions that the modes name, without duplicates, in the order of the modes.
std::vector<std::string_view> versions_of(const std::vector<TrainerMode>& modes) {
  std::vector<std::string_view> all;
  for (const TrainerMode& each : modes) {
    const std::string_view versions = each.mode.entry->versions;
    if (std::find(all.begin(), all.end(), versions) == all.end()) all.push_back(versions);
  }
  return all;
}

// Returns the best mode for each range of the trainer's versions. The best mode over all versions
// comes last.
std::vector<std::size_t> best_of_versions(const std::vector<TrainerMode>& modes,
                                          std::optional<Bytes> limit) {
  std::vector<std::size_t> best;
  for (const std::string_view versions : versions_of(modes)) {
    if (const auto index = fastest_mode(modes, limit, versions)) best.push_back(*index);
  }
  std::stable_sort(best.begin(), best.end(), [&](std::size_t a, std::size_t b) {
    return is_faster(modes[b].point, modes[a].point);
  });
  return best;
}

table::Grid modes_grid(const FrontRecord& record, const std::vector<TrainerMode>& modes,
                       const std::optional<FrontPoint>& exact) {
  constexpr std::size_t kMaxRows = 12;
  table::Grid grid = empty_points_grid(record);
  grid.rows.push_back(point_row(record, "none", record.front.reference(), {}));
  int row = 0;
  for (const TrainerMode* mode : modes_worth_having(modes, kMaxRows)) {
    grid.rows.push_back(point_row(record, std::to_string(++row), mode->point,
                                  {mode->mode.spelling + versions_words(mode->mode)}));
  }
  if (exact) {
    grid.rows.push_back(
        point_row(record, "exact", *exact,
                  {"the exact front's, " + std::string(to_string(record.front.schedule)) +
                   (record.front.schedule == Schedule::kOnDemand ? ": this engine only" : "")}));
  }
  return grid;
}

std::string limit_words(const FrontRecord& record) {
  return record.budget ? budget_of(record) : memory_of(record);
}

std::string name_of(const TrainingSystem& trainer) {
  return std::string(trainer.target.empty() ? trainer.name : trainer.target);
}

std::string answer_words(const TrainingSystem& trainer, const FrontRecord& record,
                         const std::vector<TrainerMode>& modes, std::optional<Bytes> limit,
                         const std::optional<FrontPoint>& exact) {
  std::string words = capitalized(fastest_words(trainer, record, modes, limit));
  if (words.empty()) {
    const auto lowest = std::min_element(modes.begin(), modes.end(),
                                         [](const TrainerMode& a, const TrainerMode& b) {
                                           return a.point.figures.peak < b.point.figures.peak;
                                         });
    return "No mode of " + name_of(trainer) + " fits " + limit_words(record) +
           "; the lowest peak is " + format_bytes(lowest->point.figures.peak) + ", of " +
           lowest->mode.spelling + ".";
  }
  if (exact) words += "; the exact front's: " + figures_words(*exact);
  words += ".";
  const FrontPoint& none = record.front.reference();
  if (!limit || none.figures.peak > *limit) return words;
  return words + " Without checkpointing the step fits too: " + figures_words(none) +
         "; leave checkpointing off.";
}

}  // namespace

std::vector<TrainerMode> judge_modes(const TrainingSystem& trainer, const Trace& trace,
                                     const Profile& profile, const SearchSpace& space,
                                     const std::optional<HostLink>& link) {
  SearchSpace as_trainer = space;
  as_trainer.schedule = Schedule::kWholeRegion;
  as_trainer.offload = link;
  if (link) hide_behind_blocks(trace, profile, *as_trainer.offload);
  PointJudge judge({{trace, profile, std::nullopt}}, as_trainer);
  const Resolver resolver(trace);
  std::vector<TrainerMode> modes;
  std::set<std::pair<std::string, std::string_view>> known;
  for (FilledMode& mode : filled_modes(trainer.name, trace, resolver)) {
    if (space.is_stopped()) break;
    std::optional<Plan> plan = plan_if_possible(mode.spelling, resolver);
    if (!plan || !known.emplace(plan_sha256(*plan), mode.entry->versions).second) continue;
    FrontPoint point = judge.judge(*std::move(plan));
    if (!link && point.figures.host.copied_out.count > 0) continue;
    judge.add_words(point);
    modes.push_back({std::move(mode), std::move(point)});
  }
  return modes;
}

std::optional<std::size_t> fastest_mode(const std::vector<TrainerMode>& modes,
                                        std::optional<Bytes> limit,
                                        std::optional<std::string_view> versions) {
  std::optional<std::size_t> best;
  for (std::size_t index = 0; index < modes.size(); ++index) {
    const FrontPoint& point = modes[index].point;
    if (limit && point.figures.peak > *limit) continue;
    if (versions && modes[index].mode.entry->versions != *versions) continue;
    if (!best || is_faster(point, modes[*best].point)) best = index;
  }
  return best;
}

std::string fastest_words(const TrainingSystem& trainer, const FrontRecord& record,
                          const std::vector<TrainerMode>& modes, std::optional<Bytes> limit) {
  const auto best = fastest_mode(modes, limit);
  if (!best) return "";
  const TrainerMode& winner = modes[*best];
  std::string words =
      "the fastest of " + std::to_string(modes.size()) + " modes of " + name_of(trainer);
  if (limit) words += " that fits " + limit_words(record);
  return words + ": " + winner.mode.spelling + ", " + figures_words(winner.point);
}

std::string trainer_to_text(const TrainingSystem& trainer, const FrontRecord& record,
                            const std::vector<TrainerMode>& modes, std::optional<Bytes> limit,
                            const std::optional<FrontPoint>& exact, std::size_t width) {
  const auto line = [width](const std::string& words) {
    return table::format_line(words, TableFormat::kText, width);
  };
  std::string text =
      line(setting_words(record)) + "\n" +
      table::format_grid(modes_grid(record, modes, exact), TableFormat::kText, width) + "\n" +
      line(answer_words(trainer, record, modes, limit, exact));
  const std::vector<std::size_t> best = best_of_versions(modes, limit);
  if (best.empty()) return text;
  text += line("To write: " + std::string(trainer.where) + ".");
  for (const std::size_t index : best) {
    const TrainerMode& each = modes[index];
    text += "\n";
    if (best.size() > 1) {
      text += "# " + each.mode.spelling + versions_words(each.mode) + ": " +
              figures_words(each.point) + "\n";
    }
    text += each.mode.configuration + "\n";
  }
  return text;
}

Json trainer_to_json(const TrainingSystem& trainer, const std::vector<TrainerMode>& modes,
                     std::optional<Bytes> limit, const std::optional<FrontPoint>& exact) {
  const auto best = fastest_mode(modes, limit);
  Json all = Json::array();
  for (std::size_t index = 0; index < modes.size(); ++index) {
    const auto& [mode, point] = modes[index];
    all.push_back({{"mode", mode.spelling},
                   {"versions", mode.entry->versions},
                   {"configuration", mode.configuration},
                   {"plan_sha256", plan_sha256(point.plan)},
                   {"predicted_peak_allocated_bytes", point.figures.peak.count},
                   {"predicted_step_time_ns", point.step_time.count()},
                   {"fits", limit ? Json(point.figures.peak <= *limit) : Json(nullptr)},
                   {"is_answer", best == index}});
  }
  return {{"trainer", trainer.target},
          {"where", trainer.where},
          {"source", trainer.source},
          {"schedule", to_string(Schedule::kWholeRegion)},
          {"limit_bytes", limit ? Json(limit->count) : Json(nullptr)},
          {"modes", all},
          {"exact", exact ? Json{{"predicted_peak_allocated_bytes", exact->figures.peak.count},
                                 {"predicted_step_time_ns", exact->step_time.count()}}
                          : Json(nullptr)}};
}

}  // namespace rematch
