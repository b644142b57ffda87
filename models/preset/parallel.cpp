#include "models/preset/parallel.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "models/preset/family.h"
#include "policies/base/text.h"
#include "policies/trace/routing_skew.h"

namespace rematch {
namespace {

using preset::Checked;
using preset::Dimensions;

// The axes, from the fastest-varying to the slowest-varying axis: see Note [Ranks of a layout].
constexpr std::array<std::string_view, 6> kAxes = {"tp", "ulysses", "cp", "ep", "fsdp", "pp"};

// A switch that only a layout's text has: see Note [Experts inside fsdp].
constexpr std::string_view kProduct = "product";

// Names of layouts in other systems. An error about such a name must not suggest the nearest
// supported name. Short names such as dp and tp look alike but have different meanings.
constexpr std::array<std::string_view, 9> kOtherLayouts = {
    "dp", "vpp", "etp", "edp", "hsdp", "ddp", "zero", "dp_shard", "dp_replicate"};

// How a layout spells the dimension kAccumulate of a pipeline.
constexpr std::string_view kMicro = "micro";
// How a layout spells the dimensions of blocks_of_stage().
constexpr std::string_view kStages = "stages";
constexpr std::int64_t kMaxGivenStages = 64;

bool is_switch(const DimensionEntry& entry) { return entry.maximum == 1; }

std::int64_t size_of(const Dimensions& dimensions, std::string_view axis) {
  const auto found = dimensions.find(std::string(axis));
  return found == dimensions.end() ? 1 : found->second;
}

bool is_ep_inside_fsdp(const Dimensions& dimensions) {
  const auto found = dimensions.find(std::string(kExpertFsdp));
  return found != dimensions.end() && found->second > 0;
}

// Returns whether the ranks of cp are among the ranks of fsdp.
bool is_cp_inside_fsdp(const Dimensions& dimensions) { return size_of(dimensions, "fsdp") > 1; }

// One axis of a layout. Ranks at consecutive positions along the axis are `stride` ranks apart.
struct PlacedAxis {
  std::string_view name;
  std::int64_t size;
  std::int64_t stride;
};

// Returns all axes, including those of size 1. See Note [Ranks of a layout].
std::vector<PlacedAxis> placed_axes(const Dimensions& dimensions) {
  std::vector<PlacedAxis> axes;
  std::int64_t stride = 1;
  for (const std::string_view name : kAxes) {
    const std::int64_t size = size_of(dimensions, name);
    axes.push_back({name, size, stride});
    // fsdp contains the ranks of cp and of ep, so its stride is the same
    if (name == "cp" && is_cp_inside_fsdp(dimensions)) continue;
    if (name == "ep" && is_ep_inside_fsdp(dimensions)) {
      axes.push_back({kExpertFsdp, size_of(dimensions, kExpertFsdp), stride * size});
      continue;
    }
    stride *= size;
  }
  return axes;
}

// Returns the number of consecutive ranks of fsdp that see the same batch.
std::int64_t sharing_of(const ModelSpec& spec) {
  return is_cp_inside_fsdp(spec.dimensions) ? size_of(spec.dimensions, "cp") : 1;
}

// Returns the parts of a layout's text.
const std::vector<DimensionEntry>& written_entries() {
  static const std::vector<DimensionEntry> entries = [] {
    std::vector<DimensionEntry> list = layout_entries();
    std::erase_if(list, [](const DimensionEntry& entry) { return entry.name == kExpertFsdp; });
    list.push_back({kProduct, "the world has ep x fsdp ranks", 0, 1, true});
    return list;
  }();
  return entries;
}

// Returns what a part of a layout counts.
std::string_view unit_of(std::string_view name) {
  if (name == kInterleave) return "stages";
  return name.ends_with("_layers") ? "layers" : "ranks";
}

// The dimension with the number of blocks of one stage, if all stages are given.
std::string blocks_of_stage(std::int64_t stage) {
  return "stage_" + std::to_string(stage) + "_layers";
}

// Parses "stages=5/7/7/5": the blocks of every stage of a pipeline.
Checked parse_stages(std::string_view part, Dimensions& layout) {
  if (layout.contains(blocks_of_stage(0))) return Rejected{"layout: stages appears twice"};
  const Rejected wrong{"layout: '" + std::string(part) +
                       "' does not list the blocks of each stage; write it like stages=5/7/7/5, "
                       "with at most " +
                       std::to_string(kMaxGivenStages) + " stages of at least one block"};
  const std::size_t equals = part.find('=');
  if (equals == std::string_view::npos) return wrong;
  std::size_t begin = equals + 1;
  for (std::int64_t stage = 0; stage < kMaxGivenStages; ++stage) {
    const std::size_t end = std::min(part.find('/', begin), part.size());
    const auto blocks = parse_number<std::int64_t>(part.substr(begin, end - begin));
    if (!blocks || *blocks < 1 || *blocks > preset::kMaxLayers) return wrong;
    layout[blocks_of_stage(stage)] = *blocks;
    if (end == part.size()) return std::nullopt;
    begin = end + 1;
  }
  return wrong;
}

// Returns the blocks of each stage, if all stages are given.
std::vector<std::int64_t> given_stages(const Dimensions& dimensions) {
  std::vector<std::int64_t> blocks;
  while (true) {
    const auto found = dimensions.find(blocks_of_stage(static_cast<std::int64_t>(blocks.size())));
    if (found == dimensions.end()) return blocks;
    blocks.push_back(found->second);
  }
}

std::string stages_text(const std::vector<std::int64_t>& blocks) {
  std::string text;
  for (const std::int64_t each : blocks) {
    text += (text.empty() ? "stages=" : "/") + std::to_string(each);
  }
  return text;
}

Checked parse_micro(std::string_view part, Dimensions& layout) {
  const std::string name(kAccumulate);
  if (layout.contains(name)) return Rejected{"layout: micro appears twice"};
  const std::size_t equals = part.find('=');
  const std::optional<std::int64_t> number =
      equals == std::string_view::npos ? std::nullopt
                                       : parse_number<std::int64_t>(part.substr(equals + 1));
  if (!number || *number < 1 || *number > kMaxMicroBatches) {
    return Rejected{"layout: '" + std::string(part) +
                    "' is not a number of micro-batches; write micro=M with M from 1 to " +
                    std::to_string(kMaxMicroBatches)};
  }
  layout[name] = *number;
  return std::nullopt;
}

// Parses one part of a layout's text: "tp=2" or "sp".
Checked parse_part(std::string_view part, Dimensions& layout) {
  const std::size_t equals = part.find('=');
  const std::string name(part.substr(0, equals));
  if (name == kMicro) return parse_micro(part, layout);
  if (name == kStages) return parse_stages(part, layout);
  const DimensionEntry* entry = preset::find_entry(written_entries(), name);
  if (entry == nullptr) {
    const std::vector<std::string_view> known = preset::names_of(written_entries());
    if (std::find(kOtherLayouts.begin(), kOtherLayouts.end(), name) != kOtherLayouts.end()) {
      return Rejected{"layout part '" + name + "' is not supported; supported are " +
                      joined(known)};
    }
    return Rejected{"layout has an unknown part '" + name + "'" + did_you_mean(name, known)};
  }
  if (layout.contains(name)) return Rejected{"layout: " + name + " appears twice"};
  if (is_switch(*entry)) {
    if (equals != std::string_view::npos) {
      return Rejected{"layout: " + name + " is a switch and takes no number; write " + name +
                      " or leave it out"};
    }
    layout[name] = 1;
    return std::nullopt;
  }
  const std::optional<std::int64_t> size =
      equals == std::string_view::npos ? std::nullopt
                                       : parse_number<std::int64_t>(part.substr(equals + 1));
  if (!size || *size < entry->minimum || *size > entry->maximum) {
    return Rejected{"layout: '" + std::string(part) + "' is not a number of " +
                    std::string(unit_of(name)) + "; write " + name + "=N with N from " +
                    std::to_string(entry->minimum) + " to " + std::to_string(entry->maximum)};
  }
  layout[name] = *size;
  return std::nullopt;
}

// Sets the number of ranks that shard one expert, if ep is inside fsdp.
Checked settle_expert_fsdp(Dimensions& layout) {
  if (!is_ep_inside_fsdp(layout)) return std::nullopt;
  const std::int64_t ep = size_of(layout, "ep");
  const std::int64_t fsdp = size_of(layout, "fsdp");
  layout[std::string(kExpertFsdp)] = ep == 1 || fsdp == 1 ? 0 : fsdp / ep;
  if (ep == 1 || fsdp == 1 || fsdp % ep == 0) return std::nullopt;
  const std::string text = "fsdp=" + std::to_string(fsdp) + ",ep=" + std::to_string(ep);
  return Rejected{"ep " + std::to_string(ep) + " does not divide fsdp " + std::to_string(fsdp) +
                  ": the ranks of fsdp share the experts in groups of ep; " + text +
                  ",product has ep x fsdp = " + std::to_string(ep * fsdp) + " ranks"};
}

// Replaces the switch `product` by the dimension that a spec has.
Checked read_product(Dimensions& layout) {
  const bool is_product = layout.erase(std::string(kProduct)) > 0;
  const bool has_both = layout.contains("ep") && layout.contains("fsdp");
  if (is_product && !has_both) {
    return Rejected{
        "layout: product needs ep and fsdp, whose ranks it multiplies; write it like "
        "fsdp=4,ep=2,product"};
  }
  if (!has_both) return std::nullopt;
  layout[std::string(kExpertFsdp)] = is_product ? 0 : 1;
  return settle_expert_fsdp(layout);
}

// Returns text such as "tp 2 x ulysses 4 = 8", or "tp 2" if only one axis is larger than 1.
std::string product_text(const ModelSpec& spec, const std::vector<std::string>& axes) {
  std::string text;
  std::int64_t product = 1;
  int num_split = 0;
  for (const std::string& axis : axes) {
    const std::int64_t size = size_of(spec.dimensions, axis);
    if (size == 1) continue;
    product *= size;
    ++num_split;
    if (!text.empty()) text += " x ";
    text += axis + " " + std::to_string(size);
  }
  return num_split > 1 ? text + " = " + std::to_string(product) : text;
}

// Rejects the spec unless the product of the axes' sizes divides the dimension. Ignores a dimension
// that the family does not have.
Checked require_splits(const ModelSpec& spec, const std::vector<std::string>& axes,
                       const std::string& dimension) {
  if (!spec.dimensions.contains(dimension)) return std::nullopt;
  std::int64_t product = 1;
  for (const std::string& axis : axes) product *= size_of(spec.dimensions, axis);
  if (spec.at(dimension) % product == 0) return std::nullopt;
  return Rejected{product_text(spec, axes) + " does not divide " + dimension + " " +
                  std::to_string(spec.at(dimension))};
}

Checked check_context_parallel(const ModelSpec& spec) {
  const std::int64_t cp = size_of(spec.dimensions, "cp");
  if (cp == 1 && spec.option("ring") == 1) {
    return Rejected{"ring needs cp: it sends keys and values around cp's ranks; write cp=2,ring"};
  }
  if (cp == 1) return std::nullopt;
  const std::string cp_text = "cp " + std::to_string(cp);
  const std::int64_t fsdp = size_of(spec.dimensions, "fsdp");
  if (fsdp > 1 && fsdp % cp != 0) {
    return Rejected{cp_text + " does not divide fsdp " + std::to_string(fsdp) +
                    ": fsdp counts all ranks that shard parameters, including the ranks of cp; "
                    "write fsdp=" +
                    std::to_string(fsdp * cp) + " for " + std::to_string(fsdp) +
                    " batches in a step"};
  }
  if (spec.at("tokens") % (2 * cp) == 0) return std::nullopt;
  return Rejected{cp_text + " cuts each sequence into 2 x cp = " + std::to_string(2 * cp) +
                  " chunks, which does not divide tokens " + std::to_string(spec.at("tokens"))};
}

Checked require_balanced_rows(const ModelSpec& spec) {
  if (spec.option("balanced_routing") == 0) return std::nullopt;
  std::int64_t num_ranks = size_of(spec.dimensions, "ulysses");
  if (spec.option("sp") == 1) num_ranks *= size_of(spec.dimensions, "tp");
  const std::int64_t rows = spec.at("batch") * spec.at("tokens") / num_ranks * spec.at("top_k");
  if (rows % spec.at("experts") == 0) return std::nullopt;
  return Rejected{"balanced_routing: experts " + std::to_string(spec.at("experts")) +
                  " do not divide the " + std::to_string(rows) +
                  " rows (tokens x top_k) that a rank routes"};
}

// Rejects options of a pipeline without a pipeline.
Checked require_pipeline(const ModelSpec& spec) {
  const std::int64_t first = spec.option("first_layers");
  if (first > 0 || spec.option("last_layers") > 0) {
    return Rejected{
        "first_layers and last_layers need pp: they count blocks of a pipeline's stages; write "
        "pp=4,first_layers=" +
        std::to_string(std::max<std::int64_t>(1, first))};
  }
  if (!given_stages(spec.dimensions).empty()) {
    return Rejected{"stages needs pp: it lists the blocks of a pipeline's stages; write " +
                    std::string("pp=2,stages=") + "K/L with K + L blocks"};
  }
  if (size_of(spec.dimensions, kInterleave) > 1) {
    return Rejected{
        "interleave needs pp: it puts several stages on each rank of a pipeline; write "
        "pp=2,micro=4,interleave=2"};
  }
  if (spec.option(std::string(kZeroBubble)) == 1) {
    return Rejected{"zb needs pp: it is a schedule of a pipeline; write pp=2,micro=4,zb"};
  }
  return std::nullopt;
}

// Rejects combinations that the schedule does not have.
Checked check_schedule(const ModelSpec& spec) {
  const std::int64_t ranks = size_of(spec.dimensions, "pp");
  const std::int64_t each = size_of(spec.dimensions, kInterleave);
  const bool is_zero_bubble = spec.option(std::string(kZeroBubble)) == 1;
  if (each > 1 && is_zero_bubble) {
    return Rejected{"interleave " + std::to_string(each) +
                    " and zb cannot be combined: ZB-H1 has one stage on each rank; leave one of "
                    "them out"};
  }
  if (each > 1 && micro_batches(spec) % ranks != 0) {
    return Rejected{"micro " + std::to_string(micro_batches(spec)) + " is not a multiple of pp " +
                    std::to_string(ranks) +
                    ": with interleave, each rank takes pp micro-batches through one stage after "
                    "another, as in Megatron-LM"};
  }
  if (is_zero_bubble && size_of(spec.dimensions, "fsdp") > 1) {
    return Rejected{"zb and fsdp " + std::to_string(size_of(spec.dimensions, "fsdp")) +
                    " cannot be combined: fsdp reduces the gradients of a block's weights "
                    "together, but zb computes them later than those of its norms"};
  }
  return std::nullopt;
}

Checked check_given_stages(const ModelSpec& spec) {
  const std::vector<std::int64_t> blocks = given_stages(spec.dimensions);
  if (blocks.empty()) return std::nullopt;
  const std::string text = stages_text(blocks);
  if (spec.option("first_layers") > 0 || spec.option("last_layers") > 0) {
    return Rejected{text +
                    " already has the blocks of all stages; leave out first_layers and "
                    "last_layers"};
  }
  const std::int64_t num = num_stages(spec.dimensions);
  std::int64_t sum = 0;
  for (const std::int64_t each : blocks) sum += each;
  if (static_cast<std::int64_t>(blocks.size()) != num) {
    return Rejected{text + " lists " + std::to_string(blocks.size()) + " stages, but there are " +
                    std::to_string(num)};
  }
  if (sum == spec.at("layers")) return std::nullopt;
  return Rejected{text + " has " + std::to_string(sum) + " blocks, but layers is " +
                  std::to_string(spec.at("layers"))};
}

Checked check_stages(const ModelSpec& spec) {
  const std::int64_t ranks = size_of(spec.dimensions, "pp");
  if (ranks == 1) return require_pipeline(spec);
  if (Checked rejected = check_schedule(spec)) return rejected;
  if (Checked rejected = check_given_stages(spec)) return rejected;
  const std::int64_t num = num_stages(spec.dimensions);
  const std::int64_t first = spec.option("first_layers");
  const std::int64_t last = spec.option("last_layers");
  // One block for each stage whose number of blocks is not given.
  const std::int64_t least = (first > 0 ? first : 1) + (last > 0 ? last : 1) + (num - 2);
  const std::int64_t layers = spec.at("layers");
  const bool are_given = num == 2 && first > 0 && last > 0;
  if (least > layers || (are_given && first + last != layers)) {
    std::string given;
    if (first > 0) given += ", first_layers " + std::to_string(first);
    if (last > 0) given += ", last_layers " + std::to_string(last);
    const std::string stages = num == ranks ? "pp " + std::to_string(num) + " stages"
                                            : "pp " + std::to_string(ranks) + " x interleave " +
                                                  std::to_string(num / ranks) + " = " +
                                                  std::to_string(num) + " stages";
    return Rejected{
        "layers " + std::to_string(layers) + " cannot be cut into " + stages + given +
        (are_given ? ": the two must add up to the layers" : ": every stage needs at least one")};
  }
  if (spec.option("tied") == 1) {
    return Rejected{"pp " + std::to_string(ranks) +
                    " needs tied 0: the embedding is in the first stage and the head in the last"};
  }
  if (spec.option("frozen_layers") > 0) {
    return Rejected{"pp " + std::to_string(ranks) + " and frozen_layers " +
                    std::to_string(spec.option("frozen_layers")) +
                    " cannot be combined: every stage passes gradients on"};
  }
  return std::nullopt;
}

// The ranks of ep together send ep times the balanced rows of one rank. A token sends at most one
// row to each expert, so a rank with fewer experts than top_k cannot get all of them.
Checked require_possible_skew(const ModelSpec& spec) {
  const std::int64_t percent = spec.option(std::string(kRoutingSkew));
  if (percent == 0) return std::nullopt;
  const std::string skew = "routing skew " + routing_skew_text(percent);
  const std::int64_t ep = size_of(spec.dimensions, "ep");
  if (ep == 1) {
    return Rejected{skew + " needs ep: on one rank the experts always get all rows; write ep=N"};
  }
  if (spec.option("balanced_routing") == 1) {
    return Rejected{skew + " contradicts balanced_routing; leave one of them out"};
  }
  const std::int64_t top_k = spec.at("top_k");
  const std::int64_t experts_of_rank = spec.at("experts") / ep;
  const std::int64_t most = kBalancedPercent * ep * std::min(top_k, experts_of_rank) / top_k;
  if (percent <= most) return std::nullopt;
  std::string message = skew + " is more than " + routing_skew_text(most);
  if (experts_of_rank >= top_k) {
    message += ", the number of ranks of ep: a rank gets at most the rows of all ranks";
  } else {
    message += ": the " + std::to_string(experts_of_rank) + " experts of a rank get at most " +
               std::to_string(experts_of_rank) + " of the " + std::to_string(top_k) +
               " rows (top_k) of each token of the " + std::to_string(ep) + " ranks of ep";
  }
  return Rejected{std::move(message)};
}

}  // namespace

namespace preset {

Checked settle_layout(ModelSpec& spec, const std::vector<std::string_view>& known) {
  if (Checked rejected = settle_expert_fsdp(spec.dimensions)) return rejected;
  if (!is_ep_inside_fsdp(spec.dimensions)) spec.dimensions.erase(std::string(kExpertFsdp));
  for (const DimensionEntry& entry : written_entries()) {
    if (!spec.dimensions.contains(std::string(entry.name))) continue;
    if (std::find(known.begin(), known.end(), entry.name) != known.end()) continue;
    if (entry.name == "cp") {
      return Rejected{"model '" + spec.preset +
                      "' cannot be sharded by cp, which only Llama has; ulysses splits the tokens "
                      "of every model; known: " +
                      joined(known)};
    }
    if (entry.name == "pp") {
      return Rejected{"model '" + spec.preset +
                      "' cannot be sharded by pp: its blocks all read the embedded text and time, "
                      "whose gradients every stage would have to pass on; known: " +
                      joined(known)};
    }
    return Rejected{"model '" + spec.preset + "' cannot be sharded by " + std::string(entry.name) +
                    did_you_mean(entry.name, known)};
  }
  if (world_size(spec) > kMaxWorld) {
    return Rejected{"layout " + layout_text(spec.dimensions) + " has " +
                    std::to_string(world_size(spec)) + " ranks; at most " +
                    std::to_string(kMaxWorld) + " are allowed"};
  }
  if (Checked rejected = check_stages(spec)) return rejected;
  const bool splits_sequence = spec.option("sp") == 1;
  if (splits_sequence && size_of(spec.dimensions, "tp") == 1) {
    return Rejected{"sp needs tp: it splits the tokens over tp's ranks; write tp=2,sp"};
  }
  if (Checked rejected = require_splits(spec, {"tp", "ulysses"}, "heads")) return rejected;
  if (Checked rejected = require_splits(spec, {"tp", "ulysses"}, "kv_heads")) return rejected;
  for (const char* width : {"ffn", "shared_ffn"}) {
    if (Checked rejected = require_splits(spec, {"tp"}, width)) return rejected;
  }
  if (Checked rejected = check_context_parallel(spec)) return rejected;
  std::vector<std::string> token_axes = {"ulysses", "cp"};
  if (splits_sequence) token_axes.insert(token_axes.begin(), "tp");
  if (Checked rejected = require_splits(spec, token_axes, "tokens")) return rejected;
  if (Checked rejected = require_splits(spec, {"ep"}, "experts")) return rejected;
  if (Checked rejected = require_possible_skew(spec)) return rejected;
  return require_balanced_rows(spec);
}

}  // namespace preset

const std::vector<DimensionEntry>& layout_entries() {
  static const std::vector<DimensionEntry> entries = {
      {"tp", "number of ranks that split heads and hidden widths", 1, kMaxWorld, true},
      {"sp", "1: layers that tp does not split process only a part of the tokens", 0, 1, true},
      {"ulysses", "number of ranks that split tokens; attention exchanges tokens for heads", 1,
       kMaxWorld, true},
      {"cp", "number of ranks that split tokens; attention gathers keys and values", 1, kMaxWorld,
       true},
      {"ring", "1: attention sends keys and values around the ranks of cp", 0, 1, true},
      {"fsdp", "number of ranks that shard parameters, each with its own batch", 1, kMaxWorld,
       true},
      {"ep", "number of ranks that split experts, each with its own batch", 1, kMaxWorld, true},
      {"balanced_routing", "1: every expert gets the same number of rows, regardless of the router",
       0, 1, true},
      {kExpertFsdp,
       "number of ranks of fsdp that shard each expert; 0: the world has ep x fsdp ranks", 0,
       kMaxWorld, true},
      {"pp", "number of pipeline stages of consecutive blocks", 1, preset::kMaxLayers, true},
      {kInterleave, "number of pipeline stages on each rank of pp: interleaved 1F1B", 1,
       preset::kMaxLayers, true},
      {kZeroBubble, "1: the schedule of the pipeline is ZB-H1", 0, 1, true},
      {"first_layers", "blocks of a pipeline's first stage; 0: as many as the other stages", 0,
       preset::kMaxLayers, true},
      {"last_layers", "blocks of a pipeline's last stage; 0: as many as the other stages", 0,
       preset::kMaxLayers, true}};
  return entries;
}

const std::vector<DimensionEntry>& stage_entries() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (std::int64_t stage = 0; stage < kMaxGivenStages; ++stage) {
      all.push_back(blocks_of_stage(stage));
    }
    return all;
  }();
  static const std::vector<DimensionEntry> entries = [] {
    std::vector<DimensionEntry> all;
    for (const std::string& name : names) {
      all.push_back({name, "blocks of one stage of a pipeline", 0, preset::kMaxLayers, true});
    }
    return all;
  }();
  return entries;
}

std::variant<std::map<std::string, std::int64_t>, Rejected> parse_layout(std::string_view text) {
  Dimensions layout;
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, comma - begin);
    if (part.empty()) {
      return Rejected{"layout '" + std::string(text) +
                      "' has an empty part; write it like tp=2,sp,fsdp=4"};
    }
    if (Checked rejected = parse_part(part, layout)) return *rejected;
    if (comma == text.size()) break;
    begin = comma + 1;
  }
  if (Checked rejected = read_product(layout)) return *rejected;
  if (layout.contains(std::string(kAccumulate)) && !layout.contains("pp")) {
    return Rejected{
        "layout: micro needs pp: it counts the micro-batches of a pipeline; write pp=2,micro=4, or "
        "--accumulate without stages"};
  }
  return layout;
}

std::string layout_text(const std::map<std::string, std::int64_t>& dimensions) {
  std::string text;
  for (const DimensionEntry& entry : written_entries()) {
    const auto found = dimensions.find(std::string(entry.name));
    if (found == dimensions.end()) continue;
    if (!text.empty()) text += ',';
    text += entry.name;
    if (!is_switch(entry)) text.append("=").append(std::to_string(found->second));
    const auto micro = dimensions.find(std::string(kAccumulate));
    if (entry.name == "pp" && micro != dimensions.end()) {
      text.append(",").append(kMicro).append("=").append(std::to_string(micro->second));
    }
    const std::vector<std::int64_t> blocks = given_stages(dimensions);
    if (entry.name == "pp" && !blocks.empty()) text += "," + stages_text(blocks);
  }
  const bool has_both = size_of(dimensions, "ep") > 1 && size_of(dimensions, "fsdp") > 1;
  if (has_both && !is_ep_inside_fsdp(dimensions)) text.append(",").append(kProduct);
  return text;
}

std::int64_t world_size(const Dimensions& dimensions) {
  const PlacedAxis slowest = placed_axes(dimensions).back();
  return slowest.stride * slowest.size;
}

RankAxis rank_axis(const ModelSpec& spec, std::string_view name) {
  for (const PlacedAxis& axis : placed_axes(spec.dimensions)) {
    if (axis.name == name) {
      return {std::string(name), axis.size, spec.rank / axis.stride % axis.size};
    }
  }
  return {std::string(name)};
}

RankAxis expert_shards(const ModelSpec& spec) {
  return rank_axis(spec, is_ep_inside_fsdp(spec.dimensions) ? kExpertFsdp : "fsdp");
}

std::vector<RankGroup> rank_groups(const ModelSpec& spec) {
  std::vector<RankGroup> groups;
  for (const PlacedAxis& placed : placed_axes(spec.dimensions)) {
    const RankAxis axis = rank_axis(spec, placed.name);
    if (!axis.is_split()) continue;
    RankGroup group{axis.name, {}, static_cast<int>(axis.position)};
    const std::int64_t first = spec.rank - axis.position * placed.stride;
    for (std::int64_t position = 0; position < axis.size; ++position) {
      group.ranks.push_back(static_cast<int>(first + position * placed.stride));
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

std::int64_t data_ranks(const ModelSpec& spec) {
  return size_of(spec.dimensions, "ep") * expert_shards(spec).size / sharing_of(spec);
}

std::int64_t data_index(const ModelSpec& spec, std::int64_t step) {
  const RankAxis ep = rank_axis(spec, "ep");
  const std::int64_t shard = expert_shards(spec).position / sharing_of(spec);
  const std::int64_t data_rank = shard * ep.size + ep.position;
  return step * data_ranks(spec) + data_rank;
}

std::int64_t num_stages(const Dimensions& dimensions) {
  return size_of(dimensions, "pp") * size_of(dimensions, kInterleave);
}

StageBlocks stage_blocks(const ModelSpec& spec, std::int64_t stage) {
  const std::int64_t num = num_stages(spec.dimensions);
  std::vector<std::int64_t> blocks = given_stages(spec.dimensions);
  if (blocks.empty()) {
    blocks.resize(static_cast<std::size_t>(num), 0);
    blocks.front() = spec.option("first_layers");
    if (num > 1) blocks.back() = spec.option("last_layers");
  }
  std::int64_t left = spec.at("layers");
  std::int64_t num_open = 0;  // stages whose number of blocks is not given
  for (const std::int64_t given : blocks) {
    left -= given;
    num_open += given == 0 ? 1 : 0;
  }
  std::int64_t num_larger = num_open == 0 ? 0 : left % num_open;
  const std::int64_t share = num_open == 0 ? 0 : left / num_open;
  // The first stage holds the most micro-batches, so it is the last to get one block more.
  for (std::size_t index = 0; index < blocks.size(); ++index) {
    const std::size_t each = (index + 1) % blocks.size();
    if (blocks[each] == 0) blocks[each] = share + (num_larger-- > 0 ? 1 : 0);
  }
  StageBlocks result{0, 0, stage, num};
  for (std::int64_t before = 0; before < stage; ++before) {
    result.first += blocks[static_cast<std::size_t>(before)];
  }
  result.end = result.first + blocks[static_cast<std::size_t>(stage)];
  return result;
}

StageBlocks stage_blocks(const ModelSpec& spec) {
  const std::int64_t ranks_of_stage = world_size(spec) / size_of(spec.dimensions, "pp");
  return stage_blocks(spec, spec.rank / ranks_of_stage);
}

}  // namespace rematch
