#include "reports/render/sweep.h"

#include <algorithm>
#include <set>
#include <utility>

#include "policies/base/text.h"

namespace rematch {
namespace {

// The properties of a comparison by name, such as "dtype". Properties that vary become axes.
using Settings = std::map<std::string, std::string>;

Settings settings_of(const PointIdentity& identity) {
  Settings settings;
  for (const auto& [name, size] : identity.dimensions) settings[name] = std::to_string(size);
  settings["dtype"] = identity.dtype;
  settings[kSeedAxis] = std::to_string(identity.seed);
  settings["attention"] = identity.attention_backend;
  settings["optimizer"] = identity.optimizer;
  settings["data"] = identity.data;
  settings["ops"] = identity.ops;
  settings["allocator"] = identity.allocator;
  settings["threads"] = std::to_string(identity.threads);
  settings["world"] = std::to_string(identity.world);
  return settings;
}

Settings settings_of(const UnmeasuredComparison& comparison) {
  Settings settings;
  for (const auto& [name, size] : comparison.dimensions) settings[name] = std::to_string(size);
  settings["dtype"] = comparison.dtype;
  settings[kSeedAxis] = std::to_string(comparison.seed);
  return settings;
}

bool comes_before(const std::string& left, const std::string& right) {
  const auto one = parse_number<double>(left);
  const auto other = parse_number<double>(right);
  if (one && other) return *one < *other;
  return one.has_value() != other.has_value() ? one.has_value() : left < right;
}

// True if each value of `leader` determines the value of `name`.
bool follows_from(const std::string& name, const std::string& leader,
                  const std::vector<Settings>& all) {
  std::map<std::string, std::string> partner;
  for (const Settings& settings : all) {
    const auto value = settings.find(name);
    const auto led_by = settings.find(leader);
    if (value == settings.end() || led_by == settings.end()) continue;
    if (partner.try_emplace(led_by->second, value->second).first->second != value->second) {
      return false;
    }
  }
  return true;
}

// Sorts axes by their number of values, the largest first. Among equals, "tokens" is first, and the
// others are sorted by name. The seed is always last.
bool leads(const SweepAxis& left, const SweepAxis& right) {
  const auto rank = [](const SweepAxis& axis) {
    const int kind = axis.name == kSeedAxis ? 2 : axis.name == "tokens" ? 0 : 1;
    return std::tuple(axis.name == kSeedAxis, -static_cast<std::ptrdiff_t>(axis.values.size()),
                      kind, axis.name);
  };
  return rank(left) < rank(right);
}

std::vector<SweepAxis> axes_among(const std::vector<Settings>& all) {
  std::map<std::string, std::set<std::string>> found;
  for (const Settings& settings : all) {
    for (const auto& [name, value] : settings) found[name].insert(value);
  }
  std::vector<SweepAxis> varied;
  for (const auto& [name, values] : found) {
    if (values.size() < 2) continue;
    varied.push_back({name, {values.begin(), values.end()}});
    std::sort(varied.back().values.begin(), varied.back().values.end(), comes_before);
  }
  std::sort(varied.begin(), varied.end(), leads);
  std::vector<SweepAxis> axes;
  for (SweepAxis& axis : varied) {
    const bool is_led = std::any_of(axes.begin(), axes.end(), [&](const SweepAxis& leader) {
      return follows_from(axis.name, leader.name, all);
    });
    if (!is_led) axes.push_back(std::move(axis));
  }
  return axes;
}

std::string words_at(const SweepModel& model, const Settings& settings) {
  std::string words;
  for (const SweepAxis& axis : model.axes) {
    const auto value = settings.find(axis.name);
    if (value == settings.end()) continue;
    words += (words.empty() ? "" : ", ") + axis.name + " " + value->second;
  }
  return words.empty() ? model.heading : words;
}

// Returns the text that the titles of all comparisons share.
std::string common_words(const std::vector<Settings>& all) {
  std::string words;
  for (const auto& [name, value] : all.front()) {
    const bool is_common =
        std::all_of(all.begin(), all.end(), [&, key = name, is = value](const Settings& settings) {
          const auto found = settings.find(key);
          return found == settings.end() || found->second == is;
        });
    if (is_common) words += (words.empty() ? "" : ", ") + name + " " + value;
  }
  return words;
}

const PointRecord* reference_among(const PolicyComparison& comparison) {
  for (const ComparedPoint& compared : comparison.points) {
    if (compared.none != nullptr && measured_peak(*compared.none)) return compared.none;
  }
  for (const ComparedPoint& compared : comparison.points) {
    if (compared.full != nullptr && measured_peak(*compared.full)) return compared.full;
  }
  return nullptr;
}

std::optional<double> over(double value, double reference) {
  if (reference <= 0 || value <= 0) return std::nullopt;
  return value / reference;
}

SweepCell cell_of(const ComparedPoint& compared, const PointRecord* reference) {
  SweepCell cell{&compared, {}, {}, true};
  const PointRecord& point = *compared.point;
  const auto peak = measured_peak(point);
  if (reference == nullptr || !peak) return cell;
  cell.peak_ratio =
      over(static_cast<double>(peak->count), static_cast<double>(measured_peak(*reference)->count));
  if (!point.time || !reference->time) return cell;
  const auto& ratio = point.time->ratio;
  if (ratio && ratio->reference == reference->policy) {
    cell.step_ratio = ratio->ratio;
    cell.is_step_sure = ratio->verdict != "unsure";
  } else if (point.time->step_median && reference->time->step_median) {
    cell.step_ratio = over(static_cast<double>(point.time->step_median->count()),
                           static_cast<double>(reference->time->step_median->count()));
  }
  return cell;
}

// Collects policies in the order in which they first appear, with schedules if a policy has
// several.
void name_policies(SweepModel& model) {
  std::map<std::string, std::set<Schedule>> schedules;
  for (const SweepShape& shape : model.shapes) {
    for (const ComparedPoint& compared : shape.comparison->points) {
      schedules[compared.point->policy].insert(compared.point->identity.schedule);
    }
  }
  std::map<std::string, std::size_t> known;
  for (SweepShape& shape : model.shapes) {
    for (const ComparedPoint& compared : shape.comparison->points) {
      const bool has_several = schedules.at(compared.point->policy).size() > 1;
      const std::string name = has_several ? name_of(*compared.point) : compared.point->policy;
      const auto [found, is_new] = known.try_emplace(name, model.policies.size());
      if (is_new) model.policies.push_back(name);
      if (shape.cells.size() <= found->second) shape.cells.resize(found->second + 1);
      shape.cells[found->second] = cell_of(compared, shape.reference);
    }
  }
  for (SweepShape& shape : model.shapes) shape.cells.resize(model.policies.size());
}

void find_places(SweepModel& model) {
  std::vector<Settings> all;
  for (const SweepShape& shape : model.shapes) {
    all.push_back(settings_of(shape.comparison->points.front().point->identity));
  }
  const std::size_t num_shapes = all.size();
  for (const UnmeasuredComparison* one : model.unmeasured) all.push_back(settings_of(*one));
  model.axes = axes_among(all);
  model.common = common_words(all);
  for (std::size_t index = 0; index < num_shapes; ++index) {
    for (const SweepAxis& axis : model.axes) {
      const auto value =
          std::find(axis.values.begin(), axis.values.end(), all[index].at(axis.name));
      model.shapes[index].place.push_back(static_cast<std::size_t>(value - axis.values.begin()));
    }
  }
}

}  // namespace

std::vector<SweepModel> sweep_models(const Report& report,
                                     const std::vector<PolicyComparison>& comparisons) {
  std::vector<SweepModel> models;
  const auto find = [&models](const std::string& heading) -> SweepModel& {
    for (SweepModel& model : models) {
      if (model.heading == heading) return model;
    }
    models.push_back({heading, "", {}, {}, {}, {}});
    return models.back();
  };
  std::map<std::string, std::string> heading_of_model;
  for (const PolicyComparison& comparison : comparisons) {
    const PointRecord& point = *comparison.points.front().point;
    const std::string heading = point.identity.model + " on " + point.device;
    heading_of_model.try_emplace(point.identity.model, heading);
    find(heading).shapes.push_back({&comparison, {}, reference_among(comparison), {}});
  }
  for (const UnmeasuredComparison& one : report.unmeasured) {
    const auto known = heading_of_model.find(one.model);
    find(known == heading_of_model.end() ? one.model : known->second).unmeasured.push_back(&one);
  }
  for (SweepModel& model : models) {
    name_policies(model);
    find_places(model);
  }
  return models;
}

bool is_sweep(const std::vector<SweepModel>& models) {
  return std::any_of(models.begin(), models.end(), [](const SweepModel& model) {
    return model.shapes.size() > 1 || !model.unmeasured.empty();
  });
}

std::string shape_words(const SweepModel& model, const SweepShape& shape) {
  return words_at(model, settings_of(shape.comparison->points.front().point->identity));
}

std::string shape_words(const SweepModel& model, const UnmeasuredComparison& comparison) {
  return words_at(model, settings_of(comparison));
}

}  // namespace rematch
