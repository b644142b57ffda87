#include "reports/render/charts/variant.h"

#include <algorithm>
#include <map>

#include "reports/render/format.h"
#include "reports/render/verdict.h"

namespace rematch {
namespace {

// By peak, then by time: a point is on the front if it is faster than every one before it. Equal
// ones are on it together.
void mark_front(std::vector<Variant>& variants) {
  std::vector<Variant*> measured;
  for (Variant& variant : variants) {
    if (measured_peak(variant.point()) && measured_step(variant.point())) {
      measured.push_back(&variant);
    }
  }
  const auto peak = [](const Variant* variant) { return *measured_peak(variant->point()); };
  const auto step = [](const Variant* variant) { return *measured_step(variant->point()); };
  std::stable_sort(measured.begin(), measured.end(), [&](const Variant* a, const Variant* b) {
    return peak(a) != peak(b) ? peak(a) < peak(b) : step(a) < step(b);
  });
  const Variant* last = nullptr;
  for (Variant* variant : measured) {
    const bool equal =
        last != nullptr && peak(last) == peak(variant) && step(last) == step(variant);
    variant->on_front = last == nullptr || equal || step(variant) < step(last);
    if (variant->on_front) last = variant;
  }
}

std::string recomputed_ops(const PointRecord& point) {
  if (!point.counts) return "";
  std::string text;
  for (const auto& [op_class, count] :
       point.counts->by_class[static_cast<std::size_t>(Phase::kRecompute)]) {
    if (op_class == OpClass::kView || count == 0) continue;
    text += (text.empty() ? "recomputes a step: " : ", ") +
            format_per_step(count, point.counts->counted_steps) + " " +
            std::string(to_string(op_class));
  }
  return text.empty() ? "recomputes nothing" : text;
}

}  // namespace

std::vector<Variant> variants_of(const Comparison& comparison) {
  std::map<std::string, int> spelled;
  for (const ComparedPoint& compared : comparison.points) ++spelled[compared.point->policy];
  std::vector<Variant> variants;
  for (const ComparedPoint& compared : comparison.points) {
    const PointRecord& point = *compared.point;
    Variant variant;
    variant.compared = &compared;
    variant.policy = point.policy;
    if (spelled[point.policy] > 1) variant.schedule = to_string(point.identity.schedule);
    variant.baseline = point.policy == "none" || point.policy == "full";
    variants.push_back(std::move(variant));
  }
  mark_front(variants);
  return variants;
}

std::vector<Variant> most_telling(const std::vector<Variant>& variants, std::size_t limit) {
  if (variants.size() <= limit) return variants;
  std::vector<std::size_t> order(variants.size());
  for (std::size_t index = 0; index < order.size(); ++index) order[index] = index;
  const auto rank = [&variants](std::size_t index) {
    return variants[index].baseline ? 0 : variants[index].on_front ? 1 : 2;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&rank](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  order.resize(limit);
  std::sort(order.begin(), order.end());
  std::vector<Variant> chosen;
  for (const std::size_t index : order) chosen.push_back(variants[index]);
  return chosen;
}

std::string name_of(const Variant& variant) {
  return variant.schedule.empty() ? variant.policy : variant.policy + " " + variant.schedule;
}

std::optional<double> measured_peak(const PointRecord& point) {
  if (point.status != PointStatus::kOk || !point.memory || !point.memory->peak_allocated) {
    return std::nullopt;
  }
  return static_cast<double>(point.memory->peak_allocated->count);
}

std::optional<double> measured_step(const PointRecord& point) {
  if (point.status != PointStatus::kOk || !point.time || !point.time->step_median) {
    return std::nullopt;
  }
  return static_cast<double>(point.time->step_median->count());
}

std::string describe_variant(const Variant& variant) {
  const PointRecord& point = variant.point();
  std::string text = point.policy + ", " + std::string(to_string(point.identity.schedule)) +
                     "\nplan " + point.identity.plan_sha256.substr(0, 12);
  const std::string recomputed = recomputed_ops(point);
  if (!recomputed.empty()) text += "\n" + recomputed;
  if (point.memory && point.memory->peak_allocated) {
    text += "\npeak " + format_bytes(*point.memory->peak_allocated);
    if (point.memory->peak_phase) text += " in " + describe_place(*point.memory);
    if (point.memory->predicted_peak_allocated) {
      text += ", predicted " + format_bytes(*point.memory->predicted_peak_allocated);
    }
  }
  if (point.time && point.time->step_median) {
    text += "\nstep " + format_duration(*point.time->step_median);
    if (point.time->step_interval) {
      text += ", 95 % within " + format_duration((*point.time->step_interval)[0]) + " to " +
              format_duration((*point.time->step_interval)[1]);
    }
  }
  return text + "\n" + variant.compared->verdict.text;
}

}  // namespace rematch
