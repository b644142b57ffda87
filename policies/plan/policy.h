// A policy: a small rule, independent of any model, that says which blocks it governs, how they
// become regions and what is kept in them. Pure data with a JSON form; policies/catalogue names the
// known ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/block_choice.h"
#include "policies/plan/selector.h"

namespace rematch {

// How the chosen blocks become regions.
struct RegionChoice {
  enum class Kind : std::uint8_t {
    kBlock,     // one region a block
    kSegments,  // one region for n consecutive blocks; the last may be shorter
    kRoot,      // one region: all top-level scopes but the loss
    kScopes,    // one region for each scope that matches one of `patterns`, inside chosen blocks
  };
  Kind kind = Kind::kBlock;
  int n = 0;
  std::vector<std::string> patterns;  // relative to the block: "attention", "ffn"
  // kScopes: a block without a scope that matches it is one region, whole; empty: no such rule.
  std::string only_with;
  bool operator==(const RegionChoice&) const = default;
};

// Counts the ops that match `selectors` from 1 in each region and keeps the odd or even ones;
// the others are recomputed. Ops that match `exclude` are recomputed and not counted; with
// `exclude_same_shapes` so is every counted op whose second operand has the shape of an excluded
// one's (torchtitan leaves matmuls out by their weight's shape).
struct Alternation {
  enum class Keep : std::uint8_t { kOdd, kEven };
  std::vector<Selector> selectors;
  std::vector<Selector> exclude;
  Keep keep = Keep::kOdd;
  bool exclude_same_shapes = false;
  bool operator==(const Alternation&) const = default;
};

// The collectives inside regions that no list names.
enum class CollectiveRule : std::uint8_t {
  kAsListed,  // as any other op: torch.utils.checkpoint's way
  kKeep,      // none is issued twice
  kReissue,   // each is issued again (Megatron-LM's sequence parallel does so with its gathers)
};

struct Policy {
  // The models that a warning is about; of any other the warning is not said.
  enum class Concern : std::uint8_t { kEveryModel, kDraws, kBiases, kExperts, kBiasesOrExperts };

  // Something that a policy counts on in a model: one of the scopes or one of the ops. Where a
  // model has none of them, the plan comes with a warning; with neither scopes nor ops every model
  // that it concerns does.
  struct Expectation {
    std::vector<std::string> scopes;  // below a chosen block, as RegionChoice::patterns
    std::vector<Selector> ops;        // in the policy's regions
    std::string warning;              // empty: that nothing matches
    std::string module;  // a module of recompute_modules: warned of with those that the model has
    Concern concern = Concern::kEveryModel;
    bool operator==(const Expectation&) const = default;
  };

  std::string name;  // canonical spelling, arguments included: "nth_last(2)"
  BlockChoice blocks;
  RegionChoice regions;
  std::vector<Selector> save;     // kept on the device
  std::vector<Selector> offload;  // kept on the host
  std::vector<Selector> exclude;  // recomputed whatever the other lists say
  std::optional<Alternation> alternate;
  bool inverse = false;  // true: all that is of use is kept but what matches `recompute`
  std::vector<Selector> recompute;
  // false: a fused attention op that the trace does not have stands for its class, whatever the
  // op's name is there; true: names are taken literally.
  bool exact_names = false;
  CollectiveRule collectives = CollectiveRule::kAsListed;
  // Gathers of sharded parameters (collective.h) are no matter of the lists: true: gathered
  // parameters are dropped after forward and gathered again in backward; false: they are held.
  bool reshard_after_forward = true;
  bool offload_saved = false;   // all that is to be kept waits on the host
  bool offload_inputs = false;  // what regions read of earlier ops too
  Bytes offload_at_least;       // smaller tensors stay on the device
  bool early_stop = true;
  bool no_effect_is_intended = false;  // the name or its arguments say that nothing changes
  // Not in the JSON form: they are no part of the rule.
  std::vector<Expectation> expectations;
  std::string note;  // for people: a rule of the source that no plan can hold
  bool operator==(const Policy&) const = default;
};

}  // namespace rematch
