// A model family as users see it: its presets, its dimensions and its constraints. Each family has
// one source file. Private to this folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/preset/kept_logits.h"
#include "models/preset/preset.h"
#include "policies/base/rejected.h"
#include "policies/trace/accumulation.h"
#include "policies/trace/fused_ops.h"
#include "policies/trace/routing_skew.h"

namespace rematch::preset {

using Dimensions = std::map<std::string, std::int64_t>;
using Checked = std::optional<Rejected>;

struct Preset {
  PresetEntry entry;
  Dimensions dimensions;
};

struct Family {
  std::vector<DimensionEntry> dimensions;
  std::vector<Preset> presets;
  // Computes the dimensions that follow from `given`, the user's dimensions. Rejects dimensions
  // that contradict each other.
  Checked (*settle)(ModelSpec& spec, const Dimensions& given);
  std::optional<VideoLayout> video;  // absent if the family trains on text
  // names of the layout_entries() that the family supports
  std::vector<std::string_view> layouts = {"fsdp"};
};

inline constexpr std::int64_t kMaxLayers = 10'000;
inline constexpr std::int64_t kMaxWidth = 1'048'576;
inline constexpr std::int64_t kMaxCount = 65'536;
inline constexpr std::int64_t kMaxTokens = 16'777'216;
inline constexpr std::int64_t kMaxSkewPercent = 409'600;  // all rows of 4096 ranks

// Dimensions that several families share.
inline constexpr DimensionEntry kLayers = {"layers", "transformer blocks", 1, kMaxLayers};
inline constexpr DimensionEntry kDim = {"dim", "width of the residual stream", 2, kMaxWidth};
inline constexpr DimensionEntry kHeads = {"heads", "attention heads; must divide dim", 1,
                                          kMaxCount};
inline constexpr DimensionEntry kFfn = {"ffn", "hidden width of the feed-forward", 1, kMaxWidth};
inline constexpr DimensionEntry kVocab = {
    "vocab", "output classes; at least 256, because the data is bytes", 256, kMaxTokens};
inline constexpr DimensionEntry kSequences = {"batch", "sequences per step, or per micro-batch", 1,
                                              kMaxCount};
inline constexpr DimensionEntry kMicroBatches = {
    kAccumulate, "micro-batches per step; their gradients are added up", 1, kMaxMicroBatches,
    /*is_option=*/true};
inline constexpr DimensionEntry kGradientDtype = {
    kFloat32Gradients, "1: gradients are kept in float32; 0: in the dtype of the parameters", 0, 1,
    /*is_option=*/true};
inline constexpr DimensionEntry kTokens = {"tokens", "tokens per sequence", 1, kMaxTokens};
inline constexpr DimensionEntry kExperts = {"experts", "routed experts of an MoE layer", 1,
                                            kMaxCount};
inline constexpr DimensionEntry kTopK = {
    "top_k", "number of experts that process each token; at most the number of experts", 1,
    kMaxCount};
inline constexpr DimensionEntry kExpertFfn = {
    "expert_ffn", "hidden width of a routed expert; a multiple of 8", 8, kMaxWidth};
inline constexpr DimensionEntry kSharedFfn = {
    "shared_ffn", "hidden width of the shared expert, which every token uses", 1, kMaxWidth};
inline constexpr DimensionEntry kSkew = {
    kRoutingSkew,
    "rows of the rank whose experts get most, in percent of its rows with balanced routing",
    kBalancedPercent, kMaxSkewPercent, /*is_option=*/true};
inline constexpr DimensionEntry kDropout = {
    "dropout_percent", "share of each branch's output that is dropped in training; 0: none", 0, 90,
    /*is_option=*/true};
inline constexpr DimensionEntry kFusedOps = {
    kFusedOpsDimension, "1: use fused ops where available; 0: use only ATen's ops", 0, 1,
    /*is_option=*/true};

inline constexpr DimensionEntry kKeptLogits = {
    kKeptLogitsName,
    "1: the fused loss keeps the logits for backward; 0: backward computes large logits again", 0,
    1,
    /*is_option=*/true};
inline constexpr DimensionEntry kPackedWeights = {
    "packed_weights",
    "1: one weight for query, key and value, and one for SwiGLU's two inputs; 0: a weight for each",
    0, 1, /*is_option=*/true};

// Returns `dimensions` with the values of `changes` added or replaced.
Dimensions with(Dimensions dimensions, const Dimensions& changes);

Checked require_divides(const ModelSpec& spec, const std::string& divisor,
                        const std::string& number);
// Rejects a number of heads that does not divide dim. Also rejects heads of odd width, because
// rotary embedding rotates pairs.
Checked require_rotary_heads(const ModelSpec& spec);
// Rejects a top_k above the number of experts. Also rejects rows that are not a multiple of 16
// bytes, which grouped matmuls need.
Checked require_experts(const ModelSpec& spec);

// Rejects kept_logits if the model has no fused ops. ATen's loss always keeps the logits.
Checked require_fused_loss(const ModelSpec& spec);

// Returns the entry with this name, or null if there is none.
const DimensionEntry* find_entry(const std::vector<DimensionEntry>& entries, std::string_view name);
std::vector<std::string_view> names_of(const std::vector<DimensionEntry>& entries);

// Computes the layout's dimension that follows from the others (models/preset/parallel.h). Rejects
// a layout that the family does not support, or whose sizes do not divide the spec's dimensions.
Checked settle_layout(ModelSpec& spec, const std::vector<std::string_view>& known);

// Code shared by video families. video_preset() returns a preset's dimensions with its token grid.
// settle_video() derives the grid from `tokens`, or `tokens` from the grid.
std::vector<DimensionEntry> video_dimension_entries();
Dimensions video_preset(const Dimensions& sizes, std::int64_t frames, std::int64_t height,
                        std::int64_t width);
Checked settle_video(ModelSpec& spec, const Dimensions& given);

}  // namespace rematch::preset
