#include "harness/run/timing/timed_arms.h"

#include <random>
#include <string_view>
#include <utility>

#include "harness/run/children/child_point.h"
#include "harness/run/children/turns_request.h"
#include "harness/run/timing/time_summary.h"
#include "policies/base/hashing.h"

namespace rematch {
namespace {

constexpr int kStartDigits = 16;

int repeats_of(const TimeRecord& time) {
  return time.device_state ? time.device_state->round_repeats.value_or(0) : 0;
}

// Returns a random name for this invocation of the command.
std::string name_of_start() {
  std::random_device bits;
  std::uniform_int_distribution<int> digit(0, 15);
  std::string name;
  for (int place = 0; place < kStartDigits; ++place) name += "0123456789abcdef"[digit(bits)];
  return name;
}

// Copies the status of a failed round to its point.
void note_round(const PointRecord& round, PointRecord& point) {
  if (!point.warm_up_steps) point.warm_up_steps = round.warm_up_steps;
  if (round.status == PointStatus::kOk || point.status != PointStatus::kOk) return;
  point.status = round.status;
  point.reason = round.reason;
  point.failure = round.failure;
}

std::optional<ControlRecord> control_record(const std::optional<Estimate>& ratio) {
  if (!ratio) return std::nullopt;
  ControlRecord control{ratio->value, std::nullopt};
  if (ratio->interval) control.interval = {{ratio->interval->low, ratio->interval->high}};
  return control;
}

}  // namespace

TimedArms::TimedArms(const RunSettings& settings, const std::vector<Variant>& variants,
                     const PointStore& store, Progress& progress)
    : settings_(settings),
      request_(settings.request),
      variants_(variants),
      store_(store),
      progress_(progress),
      start_(name_of_start()) {}

void TimedArms::measure(std::vector<PointRecord>& points, std::optional<std::size_t> reference) {
  reference_ = reference;
  for (std::size_t index = 0; index < points.size(); ++index) {
    if (points[index].status == PointStatus::kOk) arms_.push_back({index, false, {}});
  }
  if (arms_.empty()) return;
  if (request_.in_process) {
    measure_in_one_process(points);
    return;
  }
  if (reference_ && points[*reference_].status == PointStatus::kOk) {
    arms_.push_back({*reference_, true, {}});
  }
  std::size_t reference_arm = 0;
  for (std::size_t index = 0; index < arms_.size(); ++index) {
    if (arms_[index].point == reference_ && !arms_[index].control) reference_arm = index;
  }
  const int num_rounds = take_turns(
      arms_, reference_arm, request_.rounds, [this](int round) { return attempt_on_disk(round); },
      [&](const Arm& arm, const Turn& turn) { return measure_arm(arm, turn, points); });
  if (num_rounds < request_.rounds.most) {
    progress_.leave_out("the later rounds, because each ratio is known to within " +
                        percent(request_.rounds.precision));
  }
}

void TimedArms::measure_in_one_process(std::vector<PointRecord>& points) {
  const std::string part = std::to_string(arms_.size()) +
                           (arms_.size() == 1 ? " point" : " points alternately") +
                           " in one process";
  progress_.start(part);
  std::optional<std::vector<PointRecord>> records = turns_on_disk();
  const bool is_reused = records.has_value();
  if (!records) records = measure_turns();
  std::string_view status = to_string(PointStatus::kOk);
  for (std::size_t index = 0; index < arms_.size(); ++index) {
    PointRecord& record = (*records)[index];
    if (record.time) arms_[index].rounds.push_back(*record.time);
    if (record.status != PointStatus::kOk) status = to_string(record.status);
    note_round(record, points[arms_[index].point]);
  }
  if (is_reused) {
    progress_.reuse(part, std::string(status));
  } else {
    progress_.finish(part, std::string(status));
  }
  if (reference_ && points[*reference_].status == PointStatus::kOk) {
    add_fresh_control();
  } else {
    progress_.leave_out("the control, because the reference has no times");
  }
}

// Loads all arms of a round or none, because only arms that were timed in the same process can be
// compared.
std::optional<std::vector<PointRecord>> TimedArms::turns_on_disk() const {
  std::vector<PointRecord> records;
  for (const Arm& arm : arms_) {
    auto record = store_.load(arm_name(arm, ".turns"), PointStore::Figures::kTimes);
    if (!record || !record->time) return std::nullopt;
    if (!records.empty() && record->time->starts != records.front().time->starts) {
      return std::nullopt;
    }
    records.push_back(*std::move(record));
  }
  return records;
}

std::vector<PointRecord> TimedArms::measure_turns() {
  TurnsRequest request;
  request.rule = request_.rounds;
  for (std::size_t index = 0; index < arms_.size(); ++index) {
    if (arms_[index].point == reference_) request.reference = index;
    request.arms.push_back(
        request_for(settings_, variants_[arms_[index].point], Pass::kTime, num_steps()));
  }
  std::vector<PointRecord> records =
      measure_turns_in_child(request, settings_.children, [this](const std::string& why) {
        progress_.say("alternating timing: " + why + "; measuring it again");
      });
  for (std::size_t index = 0; index < arms_.size(); ++index) {
    PointRecord& record = records[index];
    if (record.time) record.time->starts.assign(record.time->samples.size(), start_);
    store_.save(arm_name(arms_[index], ".turns"), record);
  }
  return records;
}

// Measures the control in a fresh process, to show whether times change with the age of the shared
// process.
void TimedArms::add_fresh_control() {
  const Variant& variant = variants_[*reference_];
  const std::string part = describe_variant(variant) + " again, in a fresh process";
  Arm control{*reference_, true, {}};
  progress_.start(part);
  auto record = store_.load(arm_name(control, ".fresh"), PointStore::Figures::kTimes);
  if (record && record->time) {
    progress_.reuse(part, std::string(to_string(record->status)));
  } else {
    record = measure_in_child(
        request_for(settings_, variant, Pass::kTime, num_steps()), settings_.children,
        [&](const std::string& why) { progress_.say(part + ": " + why + "; measuring it again"); });
    store_.save(arm_name(control, ".fresh"), *record);
    progress_.finish(part, std::string(to_string(record->status)));
  }
  if (record->time) control.rounds.push_back(*record->time);
  arms_.push_back(std::move(control));
}

int TimedArms::num_steps() const { return request_.num_timed_steps.value_or(request_.num_steps); }

// Returns the number of the attempt whose results for the round are on disk. Returns nothing if the
// arms' files do not come from the same attempt, for example after a run was killed during a round.
std::optional<int> TimedArms::attempt_on_disk(int round) const {
  std::optional<int> attempt;
  std::optional<std::vector<std::string>> starts;
  for (const Arm& arm : arms_) {
    const std::optional<PointRecord> record = load_round(arm, round);
    if (!record || !record->time || record->time->starts.empty()) return std::nullopt;
    const int repeats = repeats_of(*record->time);
    if (attempt && *attempt != repeats) return std::nullopt;
    if (starts && *starts != record->time->starts) return std::nullopt;
    attempt = repeats;
    starts = record->time->starts;
  }
  return attempt;
}

std::optional<PointRecord> TimedArms::load_round(const Arm& arm, int round) const {
  return store_.load(round_name(arm, round), PointStore::Figures::kTimes);
}

PointRecord TimedArms::measure_arm(const Arm& arm, const Turn& turn,
                                   std::vector<PointRecord>& points) {
  const Variant& variant = variants_[arm.point];
  const std::string part = describe_variant(variant) + (arm.control ? " again" : "") +
                           ", time round " + std::to_string(turn.round + 1) +
                           (turn.repeat > 0 ? ", measured again" : "");
  if (turn.repeat > 0 && !turn.from_disk) progress_.add_part();
  progress_.start(part);
  PointRecord record;
  if (turn.from_disk) {
    record = load_round(arm, turn.round).value();
  } else {
    record = measure_in_child(
        request_for(settings_, variant, Pass::kTime, num_steps()), settings_.children,
        [&](const std::string& why) { progress_.say(part + ": " + why + "; measuring it again"); });
    if (record.time) record.time->starts.assign(record.time->samples.size(), start_);
    if (record.time && record.time->device_state) {
      record.time->device_state->round_repeats = turn.repeat;
    }
    store_.save(round_name(arm, turn.round), record);
  }
  const std::string status(to_string(record.status));
  if (turn.from_disk) {
    progress_.reuse(part, status);
  } else {
    progress_.finish(part, status);
  }
  if (!arm.control) note_round(record, points[arm.point]);
  return record;
}

void TimedArms::add_time(std::size_t index, PointRecord& point) const {
  const Arm* own = arm_of(index, false);
  if (own == nullptr) {
    point.time.reset();
    return;
  }
  TimeRecord time = summarize_rounds(own->rounds);
  // On a GPU, keeps the op class times of the kernel pass. On other devices, every round has times
  // of op classes.
  if (point.time) time.classes = std::move(point.time->classes);
  point.time = std::move(time);
  const Arm* reference = reference_ ? arm_of(*reference_, false) : nullptr;
  if (reference == nullptr || reference->rounds.size() != own->rounds.size()) return;
  add_ratio(point, *own, *reference);
  if (own == reference) point.time->control = control_record(control());
}

// Returns the ratio of the repeated reference to the reference. Absent if a round of either arm
// failed.
std::optional<Estimate> TimedArms::control() const {
  const Arm* reference = reference_ ? arm_of(*reference_, false) : nullptr;
  const Arm* again = reference_ ? arm_of(*reference_, true) : nullptr;
  if (reference == nullptr || again == nullptr) return std::nullopt;
  if (again->rounds.size() != reference->rounds.size()) return std::nullopt;
  if (request_.in_process) {  // the control has only one round, so rounds cannot be paired
    const double fresh = median_over_rounds(rounds_of(again->rounds.front())).value;
    return Estimate{fresh / median_over_rounds(rounds_of(reference->rounds.front())).value, {}};
  }
  return paired_ratio(rounds_of(summarize_rounds(again->rounds)),
                      rounds_of(summarize_rounds(reference->rounds)));
}

// Returns the arm of a point, or null if the point was not timed.
const Arm* TimedArms::arm_of(std::size_t point, bool control) const {
  for (const Arm& arm : arms_) {
    if (arm.point == point && arm.control == control && !arm.rounds.empty()) return &arm;
  }
  return nullptr;
}

void TimedArms::add_ratio(PointRecord& point, const Arm& own, const Arm& reference) const {
  const TimeRecord reference_time = summarize_rounds(reference.rounds);
  const std::optional<Estimate> same_twice = control();
  const double floor = same_twice ? floor_of_control(*same_twice) : kSmallestDifference;
  const std::string& name = variants_[reference.point].policy;
  point.time->ratio = ratio_to(name, *point.time, reference_time, floor);
  const RoundRule& rule = request_.rounds;
  if (&own == &reference || rule.least == rule.most || !point.time->ratio->interval) return;
  const auto [low, high] = *point.time->ratio->interval;
  const double known_to = (high - low) / 2 / point.time->ratio->ratio;
  if (known_to <= rule.precision || !point.time->quality) return;
  point.time->quality->reasons.push_back("after " + std::to_string(point.time->samples.size()) +
                                         " rounds the ratio is only known to within " +
                                         percent(known_to) + ", not " + percent(rule.precision));
}

std::string TimedArms::round_name(const Arm& arm, int round) const {
  return arm_name(arm, (arm.control ? ".again.round" : ".round") + std::to_string(round));
}

std::string TimedArms::arm_name(const Arm& arm, const std::string& part) const {
  const Variant& variant = variants_[arm.point];
  return point_name(variant.identity, variant.policy) + part + "-" + arms_hash();
}

// Returns a hash of the settings that comparable rounds share: the arms, the number of steps and
// the kernels.
std::string TimedArms::arms_hash() const {
  std::string text = std::to_string(num_steps());
  if (request_.in_process) {
    text += " in one process, rounds " + std::to_string(request_.rounds.least) + " " +
            std::to_string(request_.rounds.most) + " " + std::to_string(request_.rounds.precision);
  }
  if (request_.timed_as == Determinism::kRepeatableBits) text += " repeatable";
  if (settings_.libtorch_chooses_attention) text += " chosen attention";
  if (request_.cuda_graph) text += " replayed";
  for (const Arm& arm : arms_) {
    text.append(" ").append(point_name(variants_[arm.point].identity, variants_[arm.point].policy));
  }
  return sha256_hex(text).substr(0, 8);
}

}  // namespace rematch
