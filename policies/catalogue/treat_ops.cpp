#include "policies/catalogue/treat_ops.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "policies/base/text.h"
#include "policies/trace/collective.h"
#include "policies/trace/ring_parts.h"
#include "policies/trace/trace_op.h"

namespace rematch {
namespace {

constexpr std::size_t kMaxNamesInMessage = 12;

// Returns whether the op always runs again, even if a list says to save its result: a view, which
// costs nothing; an in-place op, which must modify the recomputed tensor; or wait_tensor, which
// returns its argument.
bool is_always_executed(const TracedOp& op) {
  return op.is_view || !op.writes.empty() || collective_part(op.name) == CollectivePart::kWait;
}

std::string_view without_overload(std::string_view name) { return name.substr(0, name.find('.')); }

std::optional<OpClass> class_of(const Selector& selector) {
  if (auto op_class = from_string<OpClass>(selector.op)) return op_class;
  const OpClass op_class = op_class_of(selector.op);
  if (op_class == OpClass::kOther) return std::nullopt;
  return op_class;
}

// Joins only as many of the names as fit in a readable line.
std::string first_of(std::vector<std::string> names) {
  const bool is_cut = names.size() > kMaxNamesInMessage;
  if (is_cut) names.resize(kMaxNamesInMessage);
  return joined(names) + (is_cut ? ", ..." : "");
}

}  // namespace

OpTreater::OpTreater(const Policy& policy, const Trace& trace)
    : policy_(policy),
      trace_(trace),
      save_(match(policy.save)),
      exclude_(match(policy.exclude)),
      recompute_(match(policy.recompute)),
      save_regions_(match(policy.save_regions)),
      recompute_regions_(match(policy.recompute_regions)) {
  for (const StoreTraits& store : kStores) {
    moved_to_[store.store] = match(policy.moved_to[store.store].results);
  }
  is_packed_.assign(trace.storages.size(), false);
  for (const TracedPack& pack : trace.packs) is_packed_[trace.values[pack.value].storage] = true;
  block_of_scope_.assign(trace.scopes.size(), nullptr);
  for (const TracedBlock& block : trace.blocks) block_of_scope_[block.scope] = &block;
  if (policy.save_last_add) note_last_adds();
  if (policy.alternate) {
    alternate_ = match(policy.alternate->selectors);
    alternate_exclude_ = match(policy.alternate->exclude);
    if (policy.alternate->exclude_same_shapes) note_excluded_shapes();
  }
}

void OpTreater::note_excluded_shapes() {
  for (const OpId op : trace_.ops.ids()) {
    const std::vector<TracedUse>& inputs = trace_.ops[op].inputs;
    if (alternate_exclude_.any(op) && inputs.size() > 1) {
      excluded_shapes_.insert(trace_.values[inputs[1].value].shape);
    }
  }
}

// Finds the last add of each block. Ignores adds in scopes inside the block.
void OpTreater::note_last_adds() {
  for (const TracedBlock& block : trace_.blocks) {
    std::optional<OpId> last;
    const TracedScope& scope = trace_.scopes[block.scope];
    for (OpId op = scope.first_op; op < scope.end_op; ++op) {
      const TracedOp& traced = trace_.ops[op];
      if (traced.scope == block.scope && traced.name == "aten::add.Tensor") last = op;
    }
    if (last) last_adds_.insert(*last);
  }
}

bool OpTreater::has_excluded_shape(const TracedOp& op) const {
  return op.inputs.size() > 1 && excluded_shapes_.contains(trace_.values[op.inputs[1].value].shape);
}

// Note [Attention by any name] Training systems list fused attention by the op names of a few
// backends. No public list contains the CPU's op. On a CPU these systems therefore recompute
// attention without notice, although the list is meant to keep it. A selector may name an attention
// op that the trace lacks. It then picks every fused attention op, and the plan states this as the
// reason.
bool OpTreater::goes_by_another_name(const Selector& selector) const {
  const std::string_view name = without_overload(selector.op);
  if (policy_.exact_names || op_class_of(selector.op) != OpClass::kAttentionForward) return false;
  return std::none_of(trace_.ops.begin(), trace_.ops.end(),
                      [name](const TracedOp& op) { return without_overload(op.name) == name; });
}

// Formats the selector that picked an op. If the selector names another op or a class, adds the
// op's own name.
std::string OpTreater::text(const Matches& matches, OpId op) const {
  const Match& match = matches.by_op[op];
  std::string text = to_string(*match.selector);
  if (match.by_class) text.append(", here ").append(trace_.ops[op].name);
  return text;
}

OpTreater::Matches OpTreater::match(const std::vector<Selector>& list) const {
  Matches found;
  if (list.empty()) return found;
  found.by_op.resize(trace_.ops.size());
  for (const Selector& selector : list) {
    Selector meant = selector;
    const bool by_class = goes_by_another_name(meant);
    if (by_class) meant.op = to_string(OpClass::kAttentionForward);
    const IdTable<OpId, bool> picked = matches(meant, trace_);
    // See Note [Parts of ring attention].
    const bool picks_parts = !selector.scope_pattern.empty() || selector.op == kRingStep;
    for (const OpId op : picked.ids()) {
      if (!picks_parts && is_part_of_ring(trace_.ops[op])) continue;
      if (picked[op] && found.by_op[op].selector == nullptr) {
        found.by_op[op] = {&selector, by_class};
      }
    }
  }
  return found;
}

// Returns the innermost block that contains a scope, or null if none does.
const TracedBlock* OpTreater::block_of(std::optional<ScopeId> scope) const {
  while (scope && block_of_scope_[*scope] == nullptr) scope = trace_.scopes[*scope].parent;
  return scope ? block_of_scope_[*scope] : nullptr;
}

std::string OpTreater::scope_name(std::optional<ScopeId> scope, const PlacedRegion& region) const {
  if (!scope) return "";
  const std::string& path = trace_.scopes[*scope].path;
  const TracedBlock* block = block_of(scope);
  if (block == nullptr || block_of(region.first_scope) == nullptr) return path;
  const std::size_t prefix = trace_.scopes[block->scope].path.size();
  std::string inside = path.size() > prefix ? path.substr(prefix + 1) : "";
  if (region.planned.layers.size() == 1) return inside;
  std::string name = "+";
  name += std::to_string(block->index - region.planned.layers.front());
  if (!inside.empty()) name += "." + inside;
  return name;
}

std::vector<PlannedOp> OpTreater::treat(const PlacedRegion& region) const {
  const OpRange range = region.range;
  std::vector<PlannedOp> ops;
  int alternated = 0;
  for (const OpId id : range.ids()) {
    const TracedOp& traced = trace_.ops[id];
    Decision decision = placed(decide(id, alternated), traced);
    if (traced.draws_random && !decision.treatment.is_kept()) {
      decision.reason += "; its draws are replayed";
    }
    ops.push_back({traced.name, scope_name(traced.scope, region), fresh_bytes(trace_, traced),
                   decision.treatment, decision.reason, false});
  }
  return ops;
}

bool OpTreater::is_in_saved_region(OpId op) const {
  if (last_adds_.contains(op)) return true;
  return save_regions_.any(op) && !recompute_regions_.any(op) &&
         !is_parameter_gather(trace_, trace_.ops[op]);
}

OpTreater::Decision OpTreater::decide(OpId op, int& alternated) const {
  const TracedOp& traced = trace_.ops[op];
  if (traced.is_view) return {Treatment::kRecompute, "view: free"};
  if (is_always_executed(traced))
    return {Treatment::kRecompute, "writes in place: always executed"};
  if (exclude_.any(op)) return {Treatment::kRecompute, "excluded by " + text(exclude_, op)};
  if (auto decision = decide_collective(traced)) return *std::move(decision);
  if (alternate_exclude_.any(op)) {
    return {Treatment::kRecompute, "excluded by " + text(alternate_exclude_, op)};
  }
  if (alternate_.any(op) && has_excluded_shape(traced)) {
    return {Treatment::kRecompute, "has the shape of an excluded op"};
  }
  if (alternate_.any(op)) {
    const bool odd = ++alternated % 2 == 1;
    const bool keep = odd == (policy_.alternate->keep == Alternation::Keep::kOdd);
    return {keep ? Treatment::kSave : Treatment::kRecompute,
            "alternates " + text(alternate_, op) + ": number " + std::to_string(alternated) +
                (odd ? ", odd" : ", even")};
  }
  return decide_by_lists(op);
}

// Completes a decision: a kept result stays on the device, or moves to the store that the policy
// names.
OpTreater::Decision OpTreater::placed(Decision decision, const TracedOp& op) const {
  for (const StoreTraits& store : kStores) {
    if (decision.treatment == Treatment::kSave && policy_.moved_to[store.store].saved) {
      decision.treatment = {store.store};
    }
  }
  if (!decision.treatment.is_moved()) return decision;
  const Store store = *decision.treatment.kept_in;
  const std::string place = traits_of(store).place;
  if (!traits_of(store).can_hold(op.name)) {
    decision = {Treatment::kSave, decision.reason + "; cannot be kept " + place};
  } else if (fresh_bytes(trace_, op) < policy_.moved_to[store].at_least) {
    decision = {Treatment::kSave, decision.reason + "; too small to " + traits_of(store).word};
  } else if (policy_.moved_to[store].demanded_only && !is_saved_by_autograd(op)) {
    decision = {Treatment::kSave, decision.reason + "; only recompute reads it"};
  }
  return decision;
}

bool OpTreater::is_saved_by_autograd(const TracedOp& op) const {
  return std::any_of(op.outputs.begin(), op.outputs.end(),
                     [&](ValueId output) { return is_packed_[trace_.values[output].storage]; });
}

std::optional<OpTreater::Decision> OpTreater::decide_collective(const TracedOp& op) const {
  if (is_parameter_gather(trace_, op)) {
    if (policy_.reshard_after_forward) {
      return Decision{Treatment::kRecompute,
                      "parameters are gathered again: reshard_after_forward"};
    }
    return Decision{Treatment::kSave, "gathered parameters are held: no reshard_after_forward"};
  }
  switch (collective_part(op.name)) {
    case CollectivePart::kStart:
      if (policy_.collectives == CollectiveRule::kKeep) {
        return Decision{Treatment::kSave, "collective: not issued again"};
      }
      if (policy_.collectives == CollectiveRule::kReissue) {
        return Decision{Treatment::kRecompute, "collective: issued again"};
      }
      return std::nullopt;
    // A collective that returns a handle has no op that waits for its completion. It must not be
    // issued twice, because nothing could wait for the second call.
    case CollectivePart::kStartWithHandle:
      return Decision{Treatment::kSave, "collective without a wait: never issued again"};
    default:
      return std::nullopt;
  }
}

OpTreater::Decision OpTreater::decide_by_lists(OpId op) const {
  if (last_adds_.contains(op))
    return {Treatment::kSave, "the last add of the block, a saved region"};
  if (is_in_saved_region(op)) {
    return {Treatment::kSave, "in saved region " + text(save_regions_, op)};
  }
  if (save_.any(op)) return {Treatment::kSave, "matches " + text(save_, op)};
  for (const StoreTraits& store : kStores) {
    const Matches& moved = moved_to_[store.store];
    if (moved.any(op)) return {{store.store}, "matches " + text(moved, op)};
  }
  if (recompute_.any(op)) return {Treatment::kRecompute, "matches " + text(recompute_, op)};
  if (policy_.inverse) return {Treatment::kSave, "not in the recompute list"};
  if (!policy_.save_regions.empty()) return {Treatment::kRecompute, "outside saved regions"};
  return {Treatment::kRecompute, has_save_list() ? "not in the save list" : "nothing is saved"};
}

bool OpTreater::has_save_list() const {
  return !policy_.save.empty() || policy_.alternate ||
         std::any_of(policy_.moved_to.values.begin(), policy_.moved_to.values.end(),
                     [](const StoreRule& rule) { return !rule.results.empty(); });
}

std::optional<Rejected> OpTreater::check_nesting(const std::vector<OpRange>& ranges) const {
  for (const Selector& saved : policy_.save_regions) {
    if (saved.op != "any") continue;
    const IdTable<OpId, bool> in_region = matches(saved, trace_);
    for (const Selector& recomputed : policy_.recompute_regions) {
      const IdTable<OpId, bool> picked = matches(recomputed, trace_);
      bool is_part = false;
      bool leaves_some = false;
      for (const OpRange range : ranges) {
        for (const OpId op : range.ids()) {
          is_part |= in_region[op] && picked[op];
          leaves_some |= in_region[op] && !picked[op];
        }
      }
      if (!is_part || !leaves_some) continue;
      return Rejected{policy_.name + ": " + to_string(recomputed) + " lies in " + to_string(saved) +
                      ", but recompute skips the whole saved region; save only the parts that must "
                      "not run again"};
    }
  }
  return std::nullopt;
}

std::optional<Rejected> OpTreater::check_matches(const std::vector<OpRange>& ranges) const {
  if (policy_.no_effect_is_intended) return std::nullopt;
  std::vector<Selector> wanted;
  bool found = false;
  const auto look = [&](const Matches& matches, const std::vector<Selector>& list) {
    wanted.insert(wanted.end(), list.begin(), list.end());
    for (OpRange range : ranges) {
      for (const OpId op : range.ids()) {
        found |= matches.any(op) && !is_always_executed(trace_.ops[op]);
      }
    }
  };
  look(save_, policy_.save);
  look(save_regions_, policy_.save_regions);
  for (const StoreTraits& store : kStores) {
    look(moved_to_[store.store], policy_.moved_to[store.store].results);
  }
  if (policy_.alternate) look(alternate_, policy_.alternate->selectors);
  if (policy_.inverse) look(recompute_, policy_.recompute);
  if (wanted.empty() || found || ranges.empty()) return std::nullopt;
  return Rejected{policy_.name + ": nothing in its regions matches " + first_of(names_of(wanted)) +
                  "; use the name or class of an op in its regions: " + names_in(ranges, wanted)};
}

// Lists the names of ops for an error message, first ops of the class that the user asked for:
// `aten::addmm` if the user wrote `aten::mm`.
std::string OpTreater::names_in(const std::vector<OpRange>& ranges,
                                const std::vector<Selector>& wanted) const {
  std::set<OpClass> classes;
  for (const Selector& selector : wanted) {
    if (const auto op_class = class_of(selector)) classes.insert(*op_class);
  }
  std::vector<std::string> names;
  for (const bool of_wanted_class : {true, false}) {
    for (OpRange range : ranges) {
      for (const OpId id : range.ids()) {
        const TracedOp& op = trace_.ops[id];
        if (is_always_executed(op) || classes.contains(op.op_class) != of_wanted_class) continue;
        if (std::find(names.begin(), names.end(), op.name) == names.end()) names.push_back(op.name);
      }
    }
  }
  return first_of(std::move(names));
}

}  // namespace rematch
