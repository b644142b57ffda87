#include "harness/run/comparison.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "harness/progress/progress.h"
#include "harness/run/children/point_store.h"
#include "harness/run/parity.h"
#include "harness/run/prediction/memory_fit.h"
#include "harness/run/prediction/predicted_point.h"
#include "harness/run/timing/timed_arms.h"
#include "harness/training/device.h"
#include "policies/base/file.h"

namespace rematch {
namespace {

// Removes all measurements except the allocator's peaks of the timed steps. Used for a device whose
// step times are meaningless.
PointRecord without_times(PointRecord point) {
  if (!point.time) return point;
  TimeRecord kept;
  kept.attention_backend = point.time->attention_backend;
  kept.repeatable_bits = point.time->repeatable_bits;
  kept.replayed = point.time->replayed;
  kept.peak_requested = point.time->peak_requested;
  kept.peak_allocated = point.time->peak_allocated;
  kept.peak_reserved = point.time->peak_reserved;
  point.time = std::move(kept);
  return point;
}

// One comparison in progress.
class ComparisonRun {
 public:
  ComparisonRun(const RunSettings& settings, const std::vector<Variant>& variants,
                const Provenance& provenance)
      : settings_(settings),
        request_(settings.request),
        variants_(variants),
        provenance_(provenance),
        store_(settings.points_folder, provenance, settings.request.fresh),
        progress_(num_parts()),
        arms_(settings, variants, store_, progress_) {}

  Report run() {
    if (request_.times_only) {
      list_points();
    } else {
      measure_exact();
    }
    choose_reference();
    repeat_reference();
    if (has_times()) arms_.measure(points_, reference_);
    say_reused();
    for (std::size_t index = 0; index < points_.size(); ++index) finish_point(index);
    return make_report();
  }

  // Makes a report of the results that were complete when the comparison was interrupted.
  Report partial_report() {
    if (!reference_) choose_reference();
    for (std::size_t index = 0; index < points_.size(); ++index) finish_point(index);
    return make_report();
  }

  bool keeps_any() const { return store_.keeps_any(); }

 private:
  int num_parts() const {
    const int num_points = static_cast<int>(variants_.size());
    return num_points + num_repeats() + (has_times() ? num_timed_parts(num_points) : 0);
  }
  // Returns how many parts of the progress display are for timing. Points that share one process
  // count as one part, and their control as another.
  int num_timed_parts(int num_points) const {
    return request_.in_process ? 2 : request_.rounds.most * (num_points + 1);
  }
  bool computes() const { return computes_values(request_.device); }
  bool has_values() const { return computes() && !request_.pretended_rank; }
  int num_repeats() const { return has_values() ? request_.num_repeats : 0; }
  bool has_times() const { return computes() && request_.rounds.most > 0; }

  bool is_snapshot_of(const Variant& variant) const {
    return !request_.snapshot_file.empty() && &variant == &variants_.back();
  }

  void list_points();
  void measure_exact();
  void end_part(const std::string& part, const PointRecord& point, bool is_reused);
  void say_reused() const;
  void choose_reference();
  void repeat_reference();
  void finish_point(std::size_t index);
  Report make_report() const;

  std::optional<PointRecord> skipped_point(const Variant& variant) const;
  PointRecord measure(const Variant& variant, Pass pass) const;

  const RunSettings& settings_;
  const RunRequest& request_;
  const std::vector<Variant>& variants_;
  const Provenance& provenance_;
  PointStore store_;
  Progress progress_;
  TimedArms arms_;
  std::vector<PointRecord> points_;
  std::vector<RepeatRecord> repeats_;
  std::optional<std::size_t> reference_;
  std::string reference_reason_;
};

void ComparisonRun::end_part(const std::string& part, const PointRecord& point, bool is_reused) {
  const std::string status(to_string(point.status));
  if (is_reused) {
    progress_.reuse(part, status);
  } else {
    progress_.finish(part, status);
  }
}

void ComparisonRun::say_reused() const {
  if (progress_.num_reused() == 0) return;
  progress_.say(std::to_string(progress_.num_reused()) + " of " +
                std::to_string(progress_.num_finished()) + " parts are reused from " +
                settings_.points_folder + "; --fresh measures all parts again");
}

// Lists the points of a comparison without exact passes. If the device's step times are
// meaningless, the points report only the peaks of the device's allocator.
void ComparisonRun::list_points() {
  for (const Variant& variant : variants_) {
    const std::string part = describe_variant(variant);
    progress_.start(part);
    std::optional<PointRecord> point = skipped_point(variant);
    if (!point && !has_times()) point = without_times(measure(variant, Pass::kTime));
    if (!point) {
      point.emplace();
      point->identity = variant.identity;
      point->policy = variant.policy;
      point->device = device_kind(request_.device);
    }
    end_part(part, *point, /*is_reused=*/false);
    points_.push_back(std::move(*point));
  }
}

void ComparisonRun::measure_exact() {
  for (const Variant& variant : variants_) {
    const std::string part = describe_variant(variant) + ", exact";
    const std::string name = point_name(variant.identity, variant.policy) +
                             (request_.cuda_graph ? ".exact-graph" : ".exact");
    progress_.start(part);
    std::optional<PointRecord> point = store_.load(name, PointStore::Figures::kExact);
    const bool has_its_steps =
        point && point->counts && point->counts->counted_steps == request_.num_steps;
    if (!has_its_steps || is_snapshot_of(variant)) point.reset();
    const bool is_reused = point.has_value();
    if (!point) point = skipped_point(variant);
    if (!point) {
      point = measure(variant, Pass::kExact);
      store_.save(name, *point);
    }
    end_part(part, *point, is_reused);
    points_.push_back(std::move(*point));
  }
}

std::optional<PointRecord> ComparisonRun::skipped_point(const Variant& variant) const {
  const std::string why = why_too_large(variant, settings_.limit);
  if (why.empty()) return std::nullopt;
  PointRecord point;
  point.identity = variant.identity;
  point.policy = variant.policy;
  point.device = request_.device;
  point.status = PointStatus::kSkipped;
  point.reason = why;
  if (!settings_.how_to_lift_limit.empty()) point.reason += "; " + settings_.how_to_lift_limit;
  return point;
}

// Chooses the policy that the user named as the reference. If its point did not end ok, chooses
// policy `full`.
void ComparisonRun::choose_reference() {
  const auto find = [this](const std::string& policy) -> std::optional<std::size_t> {
    for (std::size_t index = 0; index < points_.size(); ++index) {
      if (points_[index].policy == policy) return index;
    }
    return std::nullopt;
  };
  reference_ = find(request_.reference);
  if (!reference_ || points_[*reference_].status == PointStatus::kOk) return;
  const std::optional<std::size_t> full = find(std::string(kFullPolicy));
  if (!full || points_[*full].status != PointStatus::kOk) return;
  reference_reason_ =
      request_.reference + " ended " + std::string(to_string(points_[*reference_].status));
  reference_ = full;
}

void ComparisonRun::repeat_reference() {
  if (num_repeats() == 0) return;
  if (!reference_ || points_[*reference_].status != PointStatus::kOk) {
    progress_.leave_out("the repeats, because the reference did not finish");
    return;
  }
  const Variant& variant = variants_[*reference_];
  for (int repeat = 1; repeat <= num_repeats(); ++repeat) {
    const std::string part = describe_variant(variant) + ", repeat " + std::to_string(repeat);
    const std::string name =
        point_name(variant.identity, variant.policy) + ".repeat" + std::to_string(repeat);
    progress_.start(part);
    std::optional<PointRecord> point = store_.load(name, PointStore::Figures::kExact);
    if (point && point->steps.size() != static_cast<std::size_t>(request_.num_steps)) {
      point.reset();
    }
    const bool is_reused = point.has_value();
    if (!point) {
      point = measure(variant, Pass::kParity);
      store_.save(name, *point);
    }
    end_part(part, *point, is_reused);
    repeats_.push_back({point_key(point->identity), point->policy, point->status, point->reason,
                        std::move(point->steps)});
  }
}

void ComparisonRun::finish_point(std::size_t index) {
  PointRecord& point = points_[index];
  const Variant& variant = variants_[index];
  point.effect = variant.effect;
  add_prediction(variant, request_.num_steps, point);
  check_counts(variant, request_.num_steps, point);
  if (reference_ && has_values() && !request_.times_only) {
    point.parity = compare_steps(point, points_[*reference_]);
    point.parity->reference_reason = reference_reason_;
  }
  if (!request_.times_only || has_times()) arms_.add_time(index, point);
  add_flops(variant, provenance_.environment, point);
}

Report ComparisonRun::make_report() const {
  Report report;
  report.provenance = provenance_;
  report.repeats = repeats_;
  for (RepeatRecord& repeat : report.repeats) {
    for (StepRecord& step : repeat.steps) step.gradient_hashes.clear();
  }
  for (PointRecord point : points_) {
    store_.save(point_name(point.identity, point.policy), point);
    thin_gradient_hashes(point);  // parity has been judged, so the hashes are no longer needed
    report.points.push_back(std::move(point));
  }
  return report;
}

PointRecord ComparisonRun::measure(const Variant& variant, Pass pass) const {
  PointRequest request = request_for(settings_, variant, pass, request_.num_steps);
  if (pass == Pass::kExact && is_snapshot_of(variant)) {
    request.snapshot_file = request_.snapshot_file;
  }
  return measure_in_child(request, settings_.children, [&](const std::string& why) {
    progress_.say(describe_variant(variant) + ": " + why + "; measuring it again");
  });
}

}  // namespace

Report run_comparison(const RunSettings& settings, const std::vector<Variant>& variants,
                      const Provenance& provenance) {
  const InterruptGuard interrupts;
  ComparisonRun comparison(settings, variants, provenance);
  try {
    return comparison.run();
  } catch (const Interrupted& interrupted) {
    Report partial;
    try {
      partial = comparison.partial_report();
    } catch (const FileError&) {  // the disk may be full, but the signal must be reported
    }
    throw InterruptedComparison(interrupted.signal, what_is_kept(settings, comparison.keeps_any()),
                                std::move(partial));
  }
}

std::string what_is_kept(const RunSettings& settings, bool keeps_any) {
  if (settings.points_folder.empty()) {
    return "nothing is kept; use -o FILE to make a run resumable";
  }
  if (!keeps_any) return "nothing had finished";
  return "finished work is kept in " + settings.points_folder + "; rerun the command " +
         (settings.request.fresh ? "without --fresh to resume" : "to resume");
}

}  // namespace rematch
