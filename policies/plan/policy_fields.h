// Lists the fields of a policy's file in order. A new field needs a member in policy.h, a line
// here, and an entry in reports/schema/policy.schema.json. Private to this folder and to the test
// that compares the list with the schema.
#pragma once

#include "policies/base/field_value.h"
#include "policies/plan/policy.h"

namespace rematch {

Json to_value(const BlockChoice& blocks);
Json to_value(const RegionChoice& regions);
Json to_value(const Selector& selector);
Json to_value(CollectiveRule rule);
Json to_value(Alternation::Keep keep);
void read_value(const JsonField& field, BlockChoice& blocks);
void read_value(const JsonField& field, RegionChoice& regions);
void read_value(const JsonField& field, Selector& selector);
void read_value(const JsonField& field, CollectiveRule& rule);
void read_value(const JsonField& field, Alternation::Keep& keep);
void read_value(const JsonField& field, Alternation& alternate);

template <RecordOf<Alternation> Alternate, class Visit>
void visit_fields(Alternate& alternate, Visit visit) {
  visit("selectors", alternate.selectors);
  visit({"exclude", kLater}, alternate.exclude);
  visit({"keep", kLater}, alternate.keep);
  visit({"exclude_same_shapes", kLater | kOmitIfEmpty}, alternate.exclude_same_shapes);
}

// In a policy file, every field except the name is optional, because people write these files.
template <RecordOf<Policy> APolicy, class Visit>
void visit_fields(APolicy& policy, Visit visit) {
  constexpr unsigned kIfSaid = kLater | kOmitIfEmpty;
  visit("name", policy.name);
  visit({"blocks", kLater}, policy.blocks);
  visit({"regions", kLater}, policy.regions);
  visit({"split_only_with", kIfSaid}, policy.regions.only_with);
  visit({"save", kLater}, policy.save);
  for (const StoreTraits& store : kStores) {
    if (store.store == Store::kDevice) continue;
    visit({store.word, kIfSaid}, policy.moved_to[store.store].results);
  }
  visit({"exclude", kIfSaid}, policy.exclude);
  visit({"alternate", kIfSaid}, policy.alternate);
  visit({"inverse", kIfSaid}, policy.inverse);
  visit({"recompute", kIfSaid}, policy.recompute);
  visit({"save_regions", kIfSaid}, policy.save_regions);
  visit({"recompute_regions", kIfSaid}, policy.recompute_regions);
  visit({"save_last_add", kIfSaid}, policy.save_last_add);
  visit({"exact_names", kIfSaid}, policy.exact_names);
  visit({"collectives", kIfSaid}, policy.collectives);
  visit({"reshard_after_forward", kLater}, policy.reshard_after_forward);
  for (const StoreTraits& store : kStores) {
    if (store.store == Store::kDevice) continue;
    auto& rule = policy.moved_to[store.store];
    visit({store.saved_key, kIfSaid}, rule.saved);
    visit({store.inputs_key, kIfSaid}, rule.inputs);
    visit({store.at_least_key, kIfSaid}, rule.at_least);
    visit({store.demanded_key, kIfSaid}, rule.demanded_only);
  }
  visit({"early_stop", kLater}, policy.early_stop);
  visit({"no_effect_is_intended", kIfSaid}, policy.no_effect_is_intended);
}

}  // namespace rematch
