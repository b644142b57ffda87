#include "harness/run/comparison.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <utility>

#include "harness/run/child_point.h"
#include "harness/run/flop_limit.h"
#include "harness/run/parity.h"
#include "harness/run/point_store.h"
#include "harness/run/progress.h"
#include "harness/run/time_summary.h"
#include "policies/trace/profile.h"
#include "policies/trace/sha256.h"

namespace rematch {
namespace {

std::string percent(double fraction) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", 100 * fraction);
  return text.data();
}

// One comparison under way. Reads as its steps, in run().
class Comparison {
 public:
  Comparison(const ComparisonSettings& settings, const std::vector<Variant>& variants,
             const Provenance& provenance)
      : settings_(settings),
        variants_(variants),
        provenance_(provenance),
        store_(settings.points_folder, provenance, settings.fresh),
        progress_(num_parts()) {}

  Report run() {
    measure_exact();
    choose_reference();
    repeat_reference();
    measure_times();
    for (std::size_t index = 0; index < points_.size(); ++index) finish_point(index);
    return make_report();
  }

  // Of the reference to itself; absent without times, or where a block of either failed.
  std::optional<Estimate> control() const;

 private:
  int num_parts() const {
    const int num_points = static_cast<int>(variants_.size());
    return num_points + num_repeats() +
           (has_times() ? settings_.blocks.most * (num_points + 1) : 0);
  }
  // On meta there are no losses.
  int num_repeats() const {
    return settings_.variants.device == "meta" ? 0 : settings_.num_repeats;
  }
  bool has_times() const {
    return settings_.variants.device != "meta" && settings_.blocks.most > 0;
  }

  void measure_exact();
  void choose_reference();
  void repeat_reference();
  void measure_times();
  std::optional<int> attempt_on_disk(int block) const;
  PointRecord measure_arm(const Arm& arm, const Turn& turn);
  void finish_point(std::size_t index);
  void check_counts(const Variant& variant, PointRecord& point) const;
  void add_prediction(const Variant& variant, PointRecord& point) const;
  void add_flops(const Variant& variant, PointRecord& point) const;
  void add_time(std::size_t index);
  void add_ratio(PointRecord& point, const Arm& own, const Arm& reference) const;
  const Arm* arm_of(std::size_t point, bool control) const;
  Report make_report() const;

  PointRequest request_of(const Variant& variant, Pass pass) const;
  std::string block_name(const Arm& arm, int block) const;
  std::string arms_hash() const;

  const ComparisonSettings& settings_;
  const std::vector<Variant>& variants_;
  const Provenance& provenance_;
  PointStore store_;
  Progress progress_;
  std::vector<PointRecord> points_;
  std::vector<RepeatRecord> repeats_;
  std::vector<Arm> arms_;
  std::optional<std::size_t> reference_;
  std::string reference_reason_;
};

void Comparison::measure_exact() {
  for (const Variant& variant : variants_) {
    const std::string part = describe_variant(variant) + ", exact";
    const std::string name = point_name(variant.identity, variant.policy) + ".exact";
    progress_.start(part);
    std::optional<PointRecord> point = store_.load(name);
    if (point && (!point->counts || point->counts->counted_steps != settings_.num_steps)) {
      point.reset();
    }
    if (!point) {
      point = measure_in_child(request_of(variant, Pass::kExact), settings_.time_limit);
      store_.save(name, *point);
    }
    progress_.finish(part, std::string(to_string(point->status)));
    points_.push_back(std::move(*point));
  }
}

// The policy asked for; full where that one has nothing to compare with.
void Comparison::choose_reference() {
  const auto find = [this](const std::string& policy) -> std::optional<std::size_t> {
    for (std::size_t index = 0; index < points_.size(); ++index) {
      if (points_[index].policy == policy) return index;
    }
    return std::nullopt;
  };
  reference_ = find(settings_.reference);
  if (!reference_ || points_[*reference_].status == PointStatus::kOk) return;
  const std::optional<std::size_t> full = find("full");
  if (!full || points_[*full].status != PointStatus::kOk) return;
  reference_reason_ = settings_.reference + " ended " +
                      std::string(to_string(points_[*reference_].status)) + ": " +
                      points_[*reference_].reason;
  reference_ = full;
}

void Comparison::repeat_reference() {
  if (num_repeats() == 0) return;
  if (!reference_ || points_[*reference_].status != PointStatus::kOk) {
    progress_.leave_out("the repeats: the reference did not finish");
    return;
  }
  const Variant& variant = variants_[*reference_];
  for (int repeat = 1; repeat <= num_repeats(); ++repeat) {
    const std::string part = describe_variant(variant) + ", repeat " + std::to_string(repeat);
    const std::string name =
        point_name(variant.identity, variant.policy) + ".repeat" + std::to_string(repeat);
    progress_.start(part);
    std::optional<PointRecord> point = store_.load(name);
    if (point && point->steps.size() != static_cast<std::size_t>(settings_.num_steps)) {
      point.reset();
    }
    if (!point) {
      point = measure_in_child(request_of(variant, Pass::kParity), settings_.time_limit);
      store_.save(name, *point);
    }
    progress_.finish(part, std::string(to_string(point->status)));
    repeats_.push_back({point_key(point->identity), point->policy, point->status, point->reason,
                        std::move(point->steps)});
  }
}

void Comparison::measure_times() {
  if (!has_times()) return;
  for (std::size_t index = 0; index < points_.size(); ++index) {
    if (points_[index].status == PointStatus::kOk) arms_.push_back({index, false, {}});
  }
  if (reference_ && points_[*reference_].status == PointStatus::kOk) {
    arms_.push_back({*reference_, true, {}});
  }
  if (arms_.empty()) return;
  std::size_t reference = 0;
  for (std::size_t index = 0; index < arms_.size(); ++index) {
    if (arms_[index].point == reference_ && !arms_[index].control) reference = index;
  }
  const int num_blocks = take_turns(
      arms_, reference, settings_.blocks, [this](int block) { return attempt_on_disk(block); },
      [this](const Arm& arm, const Turn& turn) { return measure_arm(arm, turn); });
  if (num_blocks < settings_.blocks.most) {
    progress_.leave_out("the later blocks: each ratio is known to " +
                        percent(settings_.blocks.precision));
  }
}

int repeats_of(const TimeRecord& time) {
  return time.device_state ? time.device_state->block_repeats.value_or(0) : 0;
}

// A run that was ended in the middle of an attempt leaves arms of two attempts: those were not
// measured beside each other.
std::optional<int> Comparison::attempt_on_disk(int block) const {
  std::optional<int> attempt;
  for (const Arm& arm : arms_) {
    const std::optional<PointRecord> record = store_.load(block_name(arm, block));
    if (!record || !record->time) return std::nullopt;
    const int repeats = repeats_of(*record->time);
    if (attempt && *attempt != repeats) return std::nullopt;
    attempt = repeats;
  }
  return attempt;
}

PointRecord Comparison::measure_arm(const Arm& arm, const Turn& turn) {
  const Variant& variant = variants_[arm.point];
  const std::string part = describe_variant(variant) + (arm.control ? " again" : "") +
                           ", time block " + std::to_string(turn.block + 1) +
                           (turn.repeat > 0 ? ", measured again" : "");
  if (turn.repeat > 0 && !turn.from_disk) progress_.add_part();
  progress_.start(part);
  PointRecord record;
  if (turn.from_disk) {
    record = store_.load(block_name(arm, turn.block)).value();
  } else {
    record = measure_in_child(request_of(variant, Pass::kTime), settings_.time_limit);
    if (record.time && record.time->device_state) {
      record.time->device_state->block_repeats = turn.repeat;
    }
    store_.save(block_name(arm, turn.block), record);
  }
  progress_.finish(part, std::string(to_string(record.status)));
  if (record.status != PointStatus::kOk && !arm.control &&
      points_[arm.point].status == PointStatus::kOk) {
    points_[arm.point].status = record.status;
    points_[arm.point].reason = record.reason;
    points_[arm.point].failure = record.failure;
  }
  return record;
}

void Comparison::finish_point(std::size_t index) {
  PointRecord& point = points_[index];
  const Variant& variant = variants_[index];
  point.effect = variant.effect;
  add_prediction(variant, point);
  check_counts(variant, point);
  if (reference_ && settings_.variants.device != "meta") {
    point.parity = compare_steps(point, points_[*reference_]);
    point.parity->reference_reason = reference_reason_;
  }
  add_time(index);
}

// The arm of a point, if it was timed at all.
const Arm* Comparison::arm_of(std::size_t point, bool control) const {
  for (const Arm& arm : arms_) {
    if (arm.point == point && arm.control == control && !arm.blocks.empty()) return &arm;
  }
  return nullptr;
}

void Comparison::add_time(std::size_t index) {
  PointRecord& point = points_[index];
  const Arm* own = arm_of(index, false);
  if (own == nullptr) {
    point.time.reset();
    return;
  }
  TimeRecord time = summarize_blocks(own->blocks);
  // On a GPU the kernel pass has timed the classes; elsewhere every block has.
  if (point.time) time.classes = std::move(point.time->classes);
  point.time = std::move(time);
  add_flops(variants_[index], point);
  const Arm* reference = reference_ ? arm_of(*reference_, false) : nullptr;
  if (reference == nullptr || reference->blocks.size() != own->blocks.size()) return;
  add_ratio(point, *own, *reference);
}

std::optional<Estimate> Comparison::control() const {
  const Arm* reference = reference_ ? arm_of(*reference_, false) : nullptr;
  const Arm* again = reference_ ? arm_of(*reference_, true) : nullptr;
  if (reference == nullptr || again == nullptr) return std::nullopt;
  if (again->blocks.size() != reference->blocks.size()) return std::nullopt;
  return paired_ratio(blocks_of(summarize_blocks(again->blocks)),
                      blocks_of(summarize_blocks(reference->blocks)));
}

void Comparison::add_ratio(PointRecord& point, const Arm& own, const Arm& reference) const {
  const TimeRecord reference_time = summarize_blocks(reference.blocks);
  const std::optional<Estimate> same_twice = control();
  const double floor = same_twice ? floor_of_control(*same_twice) : kSmallestDifference;
  const std::string& name = points_[reference.point].policy;
  point.time->ratio = ratio_to(name, *point.time, reference_time, floor);
  const BlockRule& rule = settings_.blocks;
  if (&own == &reference || rule.least == rule.most || !point.time->ratio->interval) return;
  const auto [low, high] = *point.time->ratio->interval;
  const double known_to = (high - low) / 2 / point.time->ratio->ratio;
  if (known_to <= rule.precision || !point.time->quality) return;
  point.time->quality->reasons.push_back("after " + std::to_string(own.blocks.size()) +
                                         " blocks the ratio is known to +- " + percent(known_to) +
                                         ", not " + percent(rule.precision));
}

void Comparison::add_prediction(const Variant& variant, PointRecord& point) const {
  ClassCounts predicted = variant.predicted_counts.by_class;
  for (auto& phase : predicted) {
    for (auto& [op_class, executed] : phase) executed *= settings_.num_steps;
  }
  point.predicted_counts = predicted;
  point.recomputed_step_flops = variant.recomputed_step_flops;
  if (!point.memory) return;
  point.memory->predicted_peak_allocated = variant.prediction.memory.peak_allocated;
  point.memory->predicted_after_forward = variant.prediction.memory.after_forward;
  if (settings_.variants.device == "cuda") {
    point.memory->predicted_peak_note = kTemporariesNotMeasured;
  }
  Bytes dead;
  for (const PlannedRegion& region : variant.plan.regions) {
    for (const PlannedOp& op : variant.plan.types[static_cast<std::size_t>(region.type)].ops) {
      if (op.dead_save) dead += op.bytes;
    }
  }
  point.memory->dead_save = dead;
}

// Exactly: another count means that the plan, the engine or the prediction is wrong.
void Comparison::check_counts(const Variant& variant, PointRecord& point) const {
  if (!point.counts) return;
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    std::map<std::string, std::int64_t> expected;
    for (const auto& [op, executed] : variant.predicted_counts.by_op[phase]) {
      expected[op] = executed * settings_.num_steps;
    }
    if (expected == point.counts->by_op[phase]) continue;
    std::map<std::string, std::int64_t> all = expected;
    all.insert(point.counts->by_op[phase].begin(), point.counts->by_op[phase].end());
    for (const auto& [op, unused] : all) {
      const std::int64_t predicted = expected.count(op) != 0 ? expected.at(op) : 0;
      const auto found = point.counts->by_op[phase].find(op);
      const std::int64_t measured = found == point.counts->by_op[phase].end() ? 0 : found->second;
      if (predicted == measured) continue;
      point.effect->counts_equal_prediction = false;
      point.effect->detail = op + " in " + std::string(to_string(static_cast<Phase>(phase))) +
                             ": executed " + std::to_string(measured) + ", predicted " +
                             std::to_string(predicted);
      if (point.status == PointStatus::kOk) {
        point.status = PointStatus::kInvalid;
        point.reason = "executed other ops than predicted: " + point.effect->detail;
      }
      return;
    }
  }
  point.effect->counts_equal_prediction = true;
}

void Comparison::add_flops(const Variant& variant, PointRecord& point) const {
  if (!point.time || !point.time->step_median) return;
  point.step_flops = variant.step_flops;
  const double seconds = std::chrono::duration<double>(*point.time->step_median).count();
  point.implied_flops_per_second = static_cast<double>(variant.step_flops) / seconds;
  point.most_flops_per_second =
      most_flops_per_second(provenance_.environment, settings_.variants.device,
                            variant.identity.dtype, variant.identity.threads);
  refuse_impossible_rate(point);
}

Report Comparison::make_report() const {
  Report report;
  report.provenance = provenance_;
  report.repeats = repeats_;
  for (RepeatRecord& repeat : report.repeats) {
    for (StepRecord& step : repeat.steps) step.gradient_hashes.clear();
  }
  for (PointRecord point : points_) {
    store_.save(point_name(point.identity, point.policy), point);
    thin_gradient_hashes(point);  // parity has been judged
    report.points.push_back(std::move(point));
  }
  return report;
}

PointRequest Comparison::request_of(const Variant& variant, Pass pass) const {
  PointRequest request;
  request.pass = pass;
  request.identity = variant.identity;
  request.policy = variant.policy;
  request.device = settings_.variants.device;
  request.family = settings_.variants.model.family;
  request.data_file = settings_.variants.data_file;
  request.plan = variant.plan;
  request.num_steps = settings_.num_steps;
  return request;
}

std::string Comparison::block_name(const Arm& arm, int block) const {
  const Variant& variant = variants_[arm.point];
  return point_name(variant.identity, variant.policy) + (arm.control ? ".again" : "") + ".block" +
         std::to_string(block) + "-" + arms_hash();
}

// Blocks of another set of arms, or of other lengths, are another comparison's.
std::string Comparison::arms_hash() const {
  std::string text = std::to_string(settings_.num_steps);
  for (const Arm& arm : arms_) {
    text.append(" ").append(point_name(variants_[arm.point].identity, variants_[arm.point].policy));
  }
  return sha256_hex(text).substr(0, 8);
}

}  // namespace

Report run_comparison(const ComparisonSettings& settings, const std::vector<Variant>& variants,
                      const Provenance& provenance, std::optional<Estimate>* control) {
  const InterruptGuard interrupts;
  Comparison comparison(settings, variants, provenance);
  Report report = comparison.run();
  if (control != nullptr) *control = comparison.control();
  return report;
}

}  // namespace rematch
