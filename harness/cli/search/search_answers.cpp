#include "harness/cli/search/search_parts.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "harness/cli/exit_code.h"
#include "policies/export/torch_file.h"
#include "policies/predict/device/device_sheet.h"
#include "policies/search/front/simple_form.h"
#include "reports/render/format.h"

namespace rematch {
namespace {

FrontPoint best_simple(SimpleSearch& search, const FrontRecord& record) {
  const Front& front = record.front;
  std::optional<FrontPoint> found;
  if (record.max_slowdown_ratio) {
    const auto least = static_cast<double>(front.nothing_recomputed.step_time.count());
    found = search.lowest_within(std::chrono::nanoseconds(
        static_cast<std::int64_t>(least * (1 + *record.max_slowdown_ratio))));
  } else {
    const Bytes knee = front.points[front.knee].figures.peak;
    found = search.fastest_within(limit_of(record).value_or(knee));
  }
  return found ? *std::move(found) : search.lowest();
}

}  // namespace

std::optional<Bytes> limit_of(const FrontRecord& record) {
  if (record.budget) return record.budget;
  if (record.max_slowdown_ratio) return std::nullopt;
  return record.device_memory;
}

std::optional<SimplePoint> find_simple(const Trace& trace, const Profile& profile,
                                       const SearchSpace& space, const FrontRecord& record,
                                       FrontSearch& exact) {
  SearchSpace as_trainers = space;
  as_trainers.schedule = Schedule::kWholeRegion;
  SimpleSearch search(trace, profile, as_trainers);
  if (space.is_stopped()) return std::nullopt;
  SimplePoint simple{best_simple(search, record), {}, {}};
  FrontPoint& point = simple.point;
  point.step_time_bound = exact.step_time_bound(point.figures.peak);
  const auto least = static_cast<double>(record.front.nothing_recomputed.step_time.count());
  const double slowdown = static_cast<double>(point.step_time.count()) / least - 1;
  const FrontPoint lower = exact.lowest_within_slowdown(std::max(slowdown, 0.0));
  simple.more_peak = std::max(point.figures.peak - lower.figures.peak, Bytes{});
  if (const auto faster = exact.fastest_within(point.figures.peak)) {
    simple.more_time = std::max(point.step_time - faster->step_time, std::chrono::nanoseconds{});
  }
  return simple;
}

bool is_for_torch(const SearchFlags& flags) {
  if (flags.target.empty()) return false;
  if (flags.target != "torch") {
    throw UsageError(
        "--for takes torch; configurations of trainers hold no searched plan, only their own "
        "modes");
  }
  if (flags.schedule_option->count() != 0 && flags.schedule != "whole_region") {
    throw UsageError("torch recomputes whole regions; leave out --schedule or --for");
  }
  return true;
}

void keep_to_torch(SearchSpace& space) {
  space.whole_modules = true;
  space.most_in_segment = 1;
}

std::vector<Plan> runnable_by_torch(const Trace& trace, std::vector<Plan> baselines) {
  std::erase_if(baselines, [&](const Plan& plan) {
    return std::holds_alternative<Rejected>(torch_regions(trace, plan, Schedule::kWholeRegion));
  });
  return baselines;
}

namespace {

// Every device with a data sheet here has bfloat16.
std::optional<std::string> dtype_hint(const FrontRecord& record) {
  if (record.dtype != "float32" || find_device_sheet(record.device) == nullptr) return std::nullopt;
  return "this is float32, and most train in bfloat16 on " + record.device + ": --dtype bfloat16";
}

bool is_in_loss(const FrontPoint& point) {
  return point.figures.peak_place == "loss" || point.figures.peak_place == "head";
}

std::optional<std::string> fused_ops_hint(const SearchFlags& flags, const FrontRecord& record) {
  const std::vector<FrontPoint>& points = record.front.points;
  const auto in_loss = std::find_if(points.begin(), points.end(), is_in_loss);
  if (!flags.trace_file.empty() || in_loss == points.end()) return std::nullopt;
  const std::optional<ModelSpec> fused = flags.model.spec_of_fused_ops();
  if (!fused) return std::nullopt;
  const std::optional<Bytes> eager_peak = recomputed_peak(record_trace(flags.model.spec()), record);
  const std::optional<Bytes> fused_peak = recomputed_peak(record_trace(*fused), record);
  if (!eager_peak || !fused_peak || *fused_peak >= *eager_peak) return std::nullopt;
  return "peaks lie in the " + in_loss->figures.peak_place +
         ", with the logits there whole; --ops fused takes head and cross-entropy in chunks: the "
         "peak of full is " +
         format_bytes(*fused_peak) + " with it instead of " + format_bytes(*eager_peak);
}

std::optional<std::string> export_hint(const SearchFlags& flags) {
  if (flags.target.empty() || flags.output.empty() || flags.trace_file.empty()) return std::nullopt;
  return "rematch export " + flags.output + "#N --to torch --trace " + flags.trace_file +
         " writes point N as a file of Python";
}

}  // namespace

std::vector<std::string> search_hints(const SearchFlags& flags, const FrontRecord& record) {
  std::vector<std::string> hints;
  if (auto hint = dtype_hint(record)) hints.push_back(*std::move(hint));
  if (auto hint = fused_ops_hint(flags, record)) hints.push_back(*std::move(hint));
  if (auto hint = export_hint(flags)) hints.push_back(*std::move(hint));
  return hints;
}

}  // namespace rematch
