// A policy: a small rule that does not depend on a model. It says which blocks it applies to, how
// these blocks become regions, and what is kept in the regions. A policy is pure data with a JSON
// form. policies/catalogue lists the known policies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/block_choice.h"
#include "policies/plan/selector.h"
#include "policies/plan/treatment.h"

namespace rematch {

// The rule by which chosen blocks become regions.
struct RegionChoice {
  enum class Kind : std::uint8_t {
    kBlock,     // one region per block
    kSegments,  // one region per n consecutive blocks; the last may be shorter
    kRoot,      // one region with all top-level scopes except the loss
    kScopes,    // inside chosen blocks, one region per scope that matches one of `patterns`
  };
  Kind kind = Kind::kBlock;
  int n = 0;
  std::vector<std::string> patterns;  // path relative to the block: "attention", "ffn"
  // For kScopes. If a block has no scope that matches this pattern, the whole block is one region.
  // Empty: all blocks are split.
  std::string only_with;
  bool operator==(const RegionChoice&) const = default;
};

// In each region, numbers the ops that match `selectors` from 1. Keeps the odd or the even ops and
// recomputes the others. Ops that match `exclude` are recomputed and get no number.
struct Alternation {
  enum class Keep : std::uint8_t { kOdd, kEven };
  std::vector<Selector> selectors;
  std::vector<Selector> exclude;
  Keep keep = Keep::kOdd;
  // true: an excluded op also excludes every match whose second operand has the same shape
  bool exclude_same_shapes = false;
  bool operator==(const Alternation&) const = default;
};

// The rule for a region's collectives if they match none of the policy's lists.
enum class CollectiveRule : std::uint8_t {
  kAsListed,  // collectives are treated like other ops, as in torch.utils.checkpoint
  kKeep,      // no collective is issued twice
  // Every collective is issued again, as Megatron-LM's sequence parallel does with its gathers.
  kReissue,
};

// The part of a policy that moves values to one store.
struct StoreRule {
  std::vector<Selector> results;  // ops whose results are moved
  bool saved = false;   // whether results that would be kept on the device are moved instead
  bool inputs = false;  // whether tensors made before a region are moved if the region reads them
  Bytes at_least;       // tensors with fewer bytes stay on the device
  // Whether results that only recompute reads stay on the device, because autograd saves neither
  // them nor a view of them.
  bool demanded_only = false;
  bool moves_anything() const { return !results.empty() || saved || inputs; }
  bool operator==(const StoreRule&) const = default;
};

struct Policy {
  // The models that get a warning.
  enum class Concern : std::uint8_t { kEveryModel, kDraws, kBiases, kExperts, kBiasesOrExperts };

  // Scopes or ops that a policy relies on. If a model has none of them, the plan comes with a
  // warning. If both lists are empty, only `concern` decides whether a model gets the warning.
  struct Expectation {
    std::vector<std::string> scopes;  // paths below a chosen block, like RegionChoice::patterns
    std::vector<Selector> ops;        // selects ops in the policy's regions
    // text of the warning; empty: the warning says that nothing in the model matches
    std::string warning;
    // the module that this expectation is about, for policy recompute_modules; otherwise empty
    std::string module;
    Concern concern = Concern::kEveryModel;
    bool operator==(const Expectation&) const = default;
  };

  std::string name;  // canonical spelling with arguments: "nth_last(2)"
  BlockChoice blocks;
  RegionChoice regions;
  std::vector<Selector> save;  // ops whose results are kept on the device
  // One rule for each store. The device's rule is not used, because `save` lists the ops whose
  // results stay on the device.
  ByStore<StoreRule> moved_to;
  std::vector<Selector> exclude;  // ops that are recomputed even if another list names them
  std::optional<Alternation> alternate;
  // true: the policy keeps every useful result, except the results of ops that match `recompute`
  bool inverse = false;
  std::vector<Selector> recompute;
  // Regions as in torch_remat. Recompute skips the ops that match `save_regions`, except the ops
  // that match `recompute_regions`. The policy keeps a skipped op's result only if backward or a
  // recomputed op needs it.
  std::vector<Selector> save_regions;
  std::vector<Selector> recompute_regions;
  // If true, the last add of each block counts as an additional match of `save_regions`.
  bool save_last_add = false;
  // A selector may name a fused attention op that the trace does not contain. If false, it then
  // selects the trace's other fused attention ops. If true, it selects only the op that it names.
  bool exact_names = false;
  CollectiveRule collectives = CollectiveRule::kAsListed;
  // If true, drops gathered parameters after forward and gathers them again in backward. If false,
  // keeps them. The lists above do not apply to ops that gather sharded parameters (collective.h).
  bool reshard_after_forward = true;
  bool early_stop = true;
  // True if the policy's name or arguments show that the user wants a policy without effect.
  bool no_effect_is_intended = false;
  // The members below are not in the JSON form, because they are not part of the rule.
  std::vector<Expectation> expectations;
  std::string note;  // for people: a behaviour of the original system that no plan can express
  bool operator==(const Policy&) const = default;
};

}  // namespace rematch
