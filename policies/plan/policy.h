// A policy: a small rule that does not depend on a model. It says which blocks it governs, how they
// become regions and what is kept in them. It is pure data with a JSON form. policies/catalogue
// names the known policies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/block_choice.h"
#include "policies/plan/selector.h"

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
  std::vector<std::string> patterns;  // relative to the block: "attention", "ffn"
  // For kScopes: a block that has no scope matching this pattern becomes one whole region. Empty:
  // all blocks are split.
  std::string only_with;
  bool operator==(const RegionChoice&) const = default;
};

// Counts the ops that match `selectors` from 1 in each region, keeps the odd or even ones and
// recomputes the others. Recomputes ops that match `exclude` without counting them. With
// `exclude_same_shapes`, also recomputes every counted op whose second operand has the same shape
// as an excluded op's. torchtitan excludes matmuls by their weight's shape in this way.
struct Alternation {
  enum class Keep : std::uint8_t { kOdd, kEven };
  std::vector<Selector> selectors;
  std::vector<Selector> exclude;
  Keep keep = Keep::kOdd;
  bool exclude_same_shapes = false;
  bool operator==(const Alternation&) const = default;
};

// The rule for collectives inside regions that no list names.
enum class CollectiveRule : std::uint8_t {
  kAsListed,  // like any other op, as torch.utils.checkpoint does
  kKeep,      // no collective is issued twice
  // Every collective is issued again, as Megatron-LM's sequence parallel does with its gathers.
  kReissue,
};

struct Policy {
  // The models that a warning applies to. Other models do not get the warning.
  enum class Concern : std::uint8_t { kEveryModel, kDraws, kBiases, kExperts, kBiasesOrExperts };

  // Scopes or ops that a policy relies on. If a model has none of them, the plan comes with a
  // warning. If `scopes` and `ops` are both empty, every model that it concerns gets the warning.
  struct Expectation {
    std::vector<std::string> scopes;  // below a chosen block, like RegionChoice::patterns
    std::vector<Selector> ops;        // selects ops in the policy's regions
    std::string warning;              // empty: a warning that nothing matches
    // a module of recompute_modules; one warning lists the missing modules and those that the model
    // has
    std::string module;
    Concern concern = Concern::kEveryModel;
    bool operator==(const Expectation&) const = default;
  };

  std::string name;  // canonical spelling with arguments: "nth_last(2)"
  BlockChoice blocks;
  RegionChoice regions;
  std::vector<Selector> save;     // kept on the device
  std::vector<Selector> offload;  // kept on the host
  std::vector<Selector> exclude;  // recomputed even if the other lists name it
  std::optional<Alternation> alternate;
  bool inverse = false;  // true: keeps every useful result except those that match `recompute`
  std::vector<Selector> recompute;
  // false: a fused attention op that the trace does not have selects its whole class, whatever the
  // op's name in the trace. true: names are taken literally.
  bool exact_names = false;
  CollectiveRule collectives = CollectiveRule::kAsListed;
  // Gathers of sharded parameters (collective.h) ignore the lists. true: drops gathered parameters
  // after forward and gathers them again in backward. false: keeps them.
  bool reshard_after_forward = true;
  bool offload_saved = false;   // results to be kept wait on the host
  bool offload_inputs = false;  // tensors of earlier ops that regions read also wait on the host
  Bytes offload_at_least;       // smaller tensors stay on the device
  bool early_stop = true;
  // The name or its arguments say that the policy changes nothing.
  bool no_effect_is_intended = false;
  // Not in the JSON form, because they are not part of the rule.
  std::vector<Expectation> expectations;
  std::string note;  // for people: a rule of the source system that no plan can express
  bool operator==(const Policy&) const = default;
};

}  // namespace rematch
