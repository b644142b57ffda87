#include "tests/support/replay_oracle.h"
#include "policies/predict/region/trace_index.h"

#include <algorithm>
#include <climits>
#include <map>
#include <optional>
#include <set>

#include "policies/trace/collective.h"

namespace rematch::testing {
namespace {

constexpr int kNever = INT_MAX;

struct Moment {
  enum class Kind : std::uint8_t { kStart, kExecute, kDemand, kRelease, kBackwardOp };
  Kind kind = Kind::kStart;
  OpId op;       // the op that runs, for kExecute
  int slot = 0;  // the slot, for kDemand and kRelease
  Bytes other;
};

class Oracle {
 public:
  Oracle(const Trace& trace, OpRange region, const RegionType& type, Schedule schedule)
      : trace_(trace),
        region_(region),
        type_(type),
        schedule_(type.by_demand ? Schedule::kOnDemand : schedule),
        packs_(packs_of(trace, region)) {
    for (const OpId op : region_.ids()) waits_.push_back(find_waits(op));
    for (const OpId op : region_.ids()) reads_.push_back(find_reads(op));
  }

  OracleReplay run() {
    write_timeline();
    for (const ValueId value : trace_.values.ids()) {
      births_.push_back(birth(value));
      last_wishes_.push_back(last_wish(value));
    }
    end_of_region_ = end_of_region();
    OracleReplay result;
    for (int now = 0; now < static_cast<int>(timeline_.size()); ++now) {
      const Moment& moment = timeline_[now];
      if (moment.kind == Moment::Kind::kExecute) result.executed.push_back(moment.op);
      if (moment.kind == Moment::Kind::kDemand || moment.kind == Moment::Kind::kRelease) continue;
      result.curve.push_back(alive_at(now) + moment.other);
      result.peak = std::max(result.peak, result.curve.back());
    }
    return result;
  }

 private:
  using Kind = Moment::Kind;

  bool inside(ValueId value) const {
    const std::optional<OpId> producer = trace_.values[value].producer;
    return producer && *producer >= region_.first && *producer < region_.end;
  }

  std::vector<OpId> writes_of(StorageId storage) const {
    std::vector<OpId> ops;
    for (const OpId op : region_.ids()) {
      for (StorageId written : trace_.ops[op].writes) {
        if (written == storage) ops.push_back(op);
      }
    }
    return ops;
  }

  bool kept(ValueId value) const {
    if (!inside(value)) return false;
    const OpId producer = *trace_.values[value].producer;
    const TracedOp& op = trace_.ops[producer];
    return type_.ops[producer - region_.first].treatment == Treatment::kSave && !op.is_view &&
           op.writes.empty() && writes_of(trace_.values[value].storage).empty();
  }

  // Ops that must run before `value` can be read at `version`.
  std::set<OpId> before_read(ValueId value, int version) const {
    if (!inside(value) || kept(value)) return {};
    std::set<OpId> ops = {*trace_.values[value].producer};
    const std::vector<OpId> writes = writes_of(trace_.values[value].storage);
    for (int i = 0; i < version && i < static_cast<int>(writes.size()); ++i) ops.insert(writes[i]);
    return ops;
  }

  // Op `start` starts a collective, which fills some storages. Returns the first wait for each of
  // these storages.
  std::set<OpId> find_waits(OpId start) const {
    if (collective_part(trace_.ops[start].name) != CollectivePart::kStart) return {};
    std::set<StorageId> filled(trace_.ops[start].writes.begin(), trace_.ops[start].writes.end());
    for (ValueId output : trace_.ops[start].outputs) filled.insert(trace_.values[output].storage);
    std::set<OpId> waits;
    for (const OpId op : IdRange(start + 1, region_.end)) {
      if (collective_part(trace_.ops[op].name) != CollectivePart::kWait) continue;
      if (filled.erase(trace_.values[trace_.ops[op].inputs[0].value].storage) > 0) waits.insert(op);
    }
    return waits;
  }

  // A wait counts as a read of the collective's result, even if it was called on a view.
  std::vector<TracedUse> find_reads(OpId op) const {
    std::vector<TracedUse> reads = trace_.ops[op].inputs;
    for (const OpId start : IdRange(region_.first, op)) {
      if (!waits_of(start).contains(op)) continue;
      const StorageId storage = trace_.values[reads[0].value].storage;
      for (ValueId output : trace_.ops[start].outputs) {
        if (trace_.values[output].storage == storage) reads[0].value = output;
      }
    }
    return reads;
  }

  // Waits and reads are cached, because closure() uses them at every moment of the timeline.
  const std::set<OpId>& waits_of(OpId op) const { return waits_[op - region_.first]; }
  const std::vector<TracedUse>& reads_of(OpId op) const { return reads_[op - region_.first]; }

  std::set<OpId> closure(std::set<OpId> ops) const {
    while (true) {
      std::set<OpId> more = ops;
      for (OpId op : ops) {
        more.insert(waits_of(op).begin(), waits_of(op).end());
        for (const TracedUse& use : reads_of(op)) {
          more.merge(before_read(use.value, use.version));
        }
      }
      if (more == ops) return ops;
      ops = std::move(more);
    }
  }

  std::set<OpId> roots(int slot) const {
    const TracedPack& pack = trace_.packs[packs_[slot]];
    return before_read(pack.value, pack.version);
  }

  // Returns the op after the last write that the packed version includes. This write may come after
  // the pack.
  OpId end_of_writes(const TracedPack& pack) const {
    if (!inside(pack.value)) return region_.first;
    const std::vector<OpId> writes = writes_of(trace_.values[pack.value].storage);
    const auto num_writes = std::min<std::size_t>(pack.version, writes.size());
    return num_writes == 0 ? region_.first : writes[num_writes - 1] + 1;
  }

  void plan() {
    begin_ = static_cast<int>(timeline_.size());
    std::set<OpId> all_roots;
    OpId stop = region_.first;
    for (int slot = 0; slot < static_cast<int>(packs_.size()); ++slot) {
      stop = std::max(stop, trace_.packs[packs_[slot]].at_op);
      stop = std::max(stop, end_of_writes(trace_.packs[packs_[slot]]));
      if (dead_.contains(slot) || !inside(trace_.packs[packs_[slot]].value)) continue;
      planned_slots_.insert(slot);
      all_roots.merge(roots(slot));
    }
    if (schedule_ == Schedule::kOnDemand) {
      planned_ = closure(all_roots);
      return;
    }
    if (!type_.early_stop) stop = region_.end;
    std::set<OpId> waits;
    for (const OpId op : IdRange(region_.first, stop)) {
      bool answered = !trace_.ops[op].outputs.empty();
      for (ValueId output : trace_.ops[op].outputs) answered = answered && kept(output);
      if (answered || type_.ops[op - region_.first].skipped) continue;
      planned_.insert(op);
      waits.insert(waits_of(op).begin(), waits_of(op).end());
    }
    for (OpId op : closure(waits)) {
      if (op >= stop) planned_.insert(op);
    }
    if (skipped_ops(type_).empty()) return;
    all_roots.insert(planned_.begin(), planned_.end());
    planned_ = closure(all_roots);
  }

  void execute(const std::set<OpId>& ops) {
    for (OpId op : ops) {
      if (executed_.insert(op).second) timeline_.push_back({Kind::kExecute, op, 0, other_});
    }
  }

  // Runs the ops that a slot's value needs and that have not run yet. The planned readers of a
  // storage run before an op that overwrites the storage.
  void materialize(int slot) {
    std::set<OpId> ops = closure(roots(slot));
    while (true) {
      std::set<OpId> more = ops;
      for (OpId op : ops) {
        if (executed_.contains(op)) continue;
        for (OpId reader : planned_) {
          if (reader >= op || executed_.contains(reader)) continue;
          for (const TracedUse& use : reads_of(reader)) {
            for (StorageId written : trace_.ops[op].writes) {
              if (trace_.values[use.value].storage == written) more.merge(closure({reader}));
            }
          }
        }
      }
      if (more == ops) break;
      ops = std::move(more);
    }
    execute(ops);
  }

  void demand(int slot) {
    if (!inside(trace_.packs[packs_[slot]].value)) return;
    if (begin_ == kNever) {
      plan();
      if (schedule_ == Schedule::kWholeRegion || type_.whole_on_demand) execute(planned_);
    }
    if (schedule_ == Schedule::kOnDemand && !type_.whole_on_demand) {
      std::vector<int> order = {slot};
      for (const DemandStep& step : type_.demand_steps) {
        if (step.pack != slot) continue;
        order.insert(order.begin(), step.before.begin(), step.before.end());
        order.insert(order.end(), step.after.begin(), step.after.end());
      }
      for (int next : order) {
        if (!asked_.contains(next) && !dead_.contains(next)) materialize(next);
      }
    }
    asked_.insert(slot);
    timeline_.push_back({Kind::kDemand, {}, slot, other_});
  }

  void write_timeline() {
    std::size_t first = trace_.backward.size();
    std::size_t last = 0;
    for (std::size_t i = 0; i < trace_.backward.size(); ++i) {
      if (!slot_of(trace_.backward[i])) continue;
      first = std::min(first, i);
      last = i + 1;
    }
    for (std::size_t i = 0; i < last; ++i) {
      const BackwardEvent& event = trace_.backward[i];
      if (i == first) timeline_.push_back({Kind::kStart, {}, 0, other_});
      if (event.kind == BackwardEvent::Kind::kOp) {
        other_ = event.other_bytes;
        if (i > first) timeline_.push_back({Kind::kBackwardOp, {}, 0, other_});
        continue;
      }
      const std::optional<int> found = slot_of(event);
      if (!found) continue;
      const int slot = *found;
      if (event.kind == BackwardEvent::Kind::kDemand) {
        other_ = event.other_bytes;
        demand(slot);
      } else {
        dead_.insert(slot);
        timeline_.push_back({Kind::kRelease, {}, slot, other_});
      }
    }
  }

  std::optional<int> slot_of(const BackwardEvent& event) const {
    const auto found = std::find(packs_.begin(), packs_.end(), event.pack);
    if (found == packs_.end()) return std::nullopt;
    return static_cast<int>(found - packs_.begin());
  }

  int moment_of_run(OpId op) const {
    for (int i = 0; i < static_cast<int>(timeline_.size()); ++i) {
      if (timeline_[i].kind == Kind::kExecute && timeline_[i].op == op) return i;
    }
    return kNever;
  }

  int moment_of(Kind kind, int slot) const {
    for (int i = 0; i < static_cast<int>(timeline_.size()); ++i) {
      if (timeline_[i].kind == kind && timeline_[i].slot == slot) return i;
    }
    return kNever;
  }

  // Returns the last moment at which recompute or a demand needs the value.
  int last_wish(ValueId value) const {
    int last = -1;
    for (OpId op : planned_) {
      for (const TracedUse& use : reads_of(op)) {
        if (use.value == value) last = std::max(last, moment_of_run(op));
      }
    }
    for (int slot : planned_slots_) {
      if (trace_.packs[packs_[slot]].value != value) continue;
      last =
          std::max(last, std::min(moment_of(Kind::kDemand, slot), moment_of(Kind::kRelease, slot)));
    }
    return last;
  }

  int end_of_region() const {
    int last = -1;
    for (int slot = 0; slot < static_cast<int>(packs_.size()); ++slot) {
      last = std::max(last, moment_of(Kind::kRelease, slot));
    }
    return last;
  }

  int birth(ValueId value) const {
    if (!inside(value)) return kNever;
    return kept(value) ? -1 : moment_of_run(*trace_.values[value].producer);
  }

  bool is_alive(ValueId value, int now) const {
    const int birth = births_[value];
    if (now > end_of_region_ || birth == kNever || now < birth) return false;
    if (now == birth || (kept(value) && now < begin_)) return true;
    return now <= last_wishes_[value];
  }

  Bytes alive_at(int now) const {
    std::set<StorageId> storages;
    for (const ValueId value : trace_.values.ids()) {
      if (is_alive(value, now)) storages.insert(trace_.values[value].storage);
    }
    for (int slot : asked_) {
      const ValueId value = trace_.packs[packs_[slot]].value;
      if (moment_of(Kind::kDemand, slot) < now && now < moment_of(Kind::kRelease, slot)) {
        storages.insert(trace_.values[value].storage);
      }
    }
    Bytes bytes;
    for (StorageId storage : storages) {
      const bool is_outside =
          std::any_of(trace_.values.begin(), trace_.values.end(), [&](const TracedValue& value) {
            return value.storage == storage && !inside(ValueId(&value - trace_.values.data())) &&
                   value.producer < region_.first;
          });
      if (!is_outside) bytes += trace_.storages[storage].bytes;
    }
    if (timeline_[now].kind == Kind::kExecute) bytes += made_twice(timeline_[now].op, now);
    return bytes;
  }

  // Returns the bytes of the op's outputs that were kept. They exist twice for a moment if the op
  // runs again because another output was overwritten.
  Bytes made_twice(OpId op, int now) const {
    Bytes bytes;
    for (ValueId output : trace_.ops[op].outputs) {
      if (kept(output) && is_alive(output, now)) {
        bytes += trace_.storages[trace_.values[output].storage].bytes;
      }
    }
    return bytes;
  }

  const Trace& trace_;
  OpRange region_;
  const RegionType& type_;
  Schedule schedule_;
  std::vector<PackId> packs_;
  std::vector<std::set<OpId>> waits_;
  std::vector<std::vector<TracedUse>> reads_;
  std::vector<Moment> timeline_;
  IdTable<ValueId, int> births_;
  IdTable<ValueId, int> last_wishes_;
  int end_of_region_ = kNever;
  int begin_ = kNever;
  std::set<OpId> planned_;
  std::set<OpId> executed_;
  std::set<int> planned_slots_;
  std::set<int> asked_;
  std::set<int> dead_;
  Bytes other_;
};

}  // namespace

OracleReplay replay_oracle(const Trace& trace, OpRange region, const RegionType& type,
                           Schedule schedule) {
  return Oracle(trace, region, type, schedule).run();
}

}  // namespace rematch::testing
