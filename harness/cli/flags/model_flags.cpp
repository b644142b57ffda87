#include "harness/cli/flags/model_flags.h"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

#include "harness/cli/files/output.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/flags/require.h"
#include "models/preset/kept_logits.h"
#include "models/preset/parallel.h"
#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/base/rejected.h"
#include "policies/base/text.h"
#include "policies/trace/accumulation.h"
#include "policies/trace/fused_ops.h"
#include "policies/trace/routing_skew.h"
#include "policies/trace/trace_json.h"

namespace rematch {
namespace {

std::string flag_of(std::string_view dimension) {
  std::string flag = "--" + std::string(dimension);
  for (char& letter : flag) {
    if (letter == '_') letter = '-';
  }
  return flag;
}

bool is_of_layout(std::string_view dimension) {
  return std::ranges::any_of(layout_entries(), [dimension](const DimensionEntry& entry) {
    return entry.name == dimension;
  });
}

std::string full_dtype(const std::string& text) {
  if (text == "bf16") return "bfloat16";
  return text == "fp32" ? "float32" : text;
}

// Parses a whole number. For example "8k" is 8192, because context lengths are written this way.
std::optional<std::int64_t> number_of(std::string_view text) {
  constexpr std::int64_t kThousand = 1024;
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const bool is_short = text.ends_with('k') || text.ends_with('K');
  if (is_short) text.remove_suffix(1);
  const auto number = parse_number<std::int64_t>(text);
  if (!number || !is_short) return number;
  return *number > 0 && *number < kMost ? std::optional(*number * kThousand) : std::nullopt;
}

// Parses a skew such as 1.3 into percent. Throws CLI11's error if the skew is invalid.
std::int64_t skew_percent_of(const std::string& text) {
  const auto skew = parse_number<double>(text);
  const double percent = skew.value_or(0) * static_cast<double>(kBalancedPercent);
  const double whole = std::round(percent);
  constexpr double kRounding = 1e-6;  // 1.3 has no exact binary form
  if (!skew || !std::isfinite(percent) || std::abs(percent - whole) > kRounding) {
    throw CLI::ValidationError("--routing-skew",
                               in_quotes(text) +
                                   " is not a number with at most two decimals; write it "
                                   "like 1.3");
  }
  if (*skew < 1) {
    throw CLI::ValidationError("--routing-skew",
                               text +
                                   " is below 1, which is balanced routing; the rank with the most "
                                   "rows gets at least its balanced rows");
  }
  if (*skew > kMaxWorld) {
    throw CLI::ValidationError(
        "--routing-skew",
        text + " is more than " + std::to_string(kMaxWorld) + ", the largest number of ranks");
  }
  return static_cast<std::int64_t>(whole);
}

// Returns which fsdp makes a layout without fsdp use all ranks of the world, if there is one.
std::optional<std::int64_t> fsdp_for(std::int64_t world,
                                     const std::map<std::string, std::int64_t>& dimensions) {
  std::int64_t inside = 1;  // number of ranks that are among those of fsdp
  for (const char* axis : {"cp", "ep"}) {
    const auto found = dimensions.find(axis);
    if (found != dimensions.end()) inside *= found->second;
  }
  const std::int64_t others = world_size(dimensions) / inside;
  const std::int64_t fsdp = world % others == 0 ? world / others : 1;
  return fsdp > 1 && fsdp % inside == 0 ? std::optional(fsdp) : std::nullopt;
}

// Throws UsageError if both --world and a layout in `dimensions` shard the model.
void require_one_sharding(int world, const std::map<std::string, std::int64_t>& dimensions) {
  const std::string layout = layout_text(dimensions);
  if (world == 1 || layout.empty()) return;
  const std::int64_t ranks = world_size(dimensions);
  std::string advice = "leave --world out";
  if (!dimensions.contains("fsdp")) {
    const auto fsdp = fsdp_for(world, dimensions);
    advice += fsdp ? ", or give --parallel " + layout + ",fsdp=" + std::to_string(*fsdp)
                   : "; fsdp cannot use the ranks of " + layout;
  }
  throw UsageError("--world " + std::to_string(world) + " needs an unsharded model, but " + layout +
                   " already shards this model over " + std::to_string(ranks) + " ranks; " +
                   advice);
}

// Throws UsageError if the trace has another number of micro-batches already.
Trace with_micro_batches(Trace trace, std::optional<std::int64_t> num) {
  const std::int64_t own = micro_batches(trace);
  if (!num || *num == own) return trace;
  if (own == 1) return accumulating(std::move(trace), *num);
  throw UsageError("--accumulate " + std::to_string(*num) +
                   " needs a trace of one micro-batch, but " + "this trace of " + trace.model +
                   " was recorded with --accumulate " + std::to_string(own) +
                   "; record it again without --accumulate");
}

// Throws UsageError if the model has no experts.
void require_experts(const std::string& model, const std::string& dtype) {
  const ModelFamily family = require<ModelSpec>(make_spec(model, {}, dtype)).family;
  const auto is_skew = [](const DimensionEntry& entry) { return entry.name == kRoutingSkew; };
  if (std::ranges::any_of(dimension_entries(family), is_skew)) return;
  throw UsageError("--routing-skew needs a model with experts, and " + model +
                   " has none; leave it out, or choose a model such as moe_small");
}

}  // namespace

ModelFlags::ModelFlags(CLI::App& app, Name name) : name_(name) {
  if (name == Name::kPositional) {
    app.add_option("model", model_, "Model preset; see rematch list");
  } else {
    app.add_option("--model", model_, "Model preset; see rematch list");
  }
  dtype_option_ = app.add_option("--dtype", dtype_,
                                 "float32 (fp32), or bfloat16 (bf16) with float32 master weights")
                      ->transform([](const std::string& text) { return full_dtype(text); });
  app.add_option("--ops", ops_,
                 "eager: norms, modulation, rotary embedding, SwiGLU and loss as ATen ops; fused: "
                 "one op each");
  app.add_option(
         "--gradient-dtype", gradient_dtype_,
         "dtype in which gradients are kept: float32 for a bfloat16 model too (default: the "
         "model's dtype)")
      ->transform([](const std::string& text) { return full_dtype(text); });
  app.add_option("--video", video_,
                 "Size of a DiT's video: frames x height x width in pixels, such as 77x480x832");
  app.add_option_function<std::string>(
      "--parallel",
      [this](const std::string& text) {
        const auto layout = parse_layout(text);
        if (const auto* rejected = std::get_if<Rejected>(&layout)) {
          throw CLI::ValidationError("--parallel", rejected->message);
        }
        for (const auto& [option, size] : std::get<0>(layout)) dimensions_[option] = size;
      },
      "Layout over ranks: tp=N, sp, ulysses=N, cp=N, ring, fsdp=N, ep=N, balanced_routing, "
      "separated by commas: tp=2,sp,fsdp=4. fsdp=8,ep=4 has 8 ranks, fsdp=8,ep=4,product has 32. "
      "Pipelines: pp=N, micro=M, interleave=V or zb, stages=K/L/...");
  app.add_option_function<std::string>(
      "--routing-skew",
      [this](const std::string& text) {
        dimensions_[std::string(kRoutingSkew)] = skew_percent_of(text);
      },
      "For predictions under ep: the rank with the most rows gets 1.3 times its balanced rows "
      "(default: 1)");
  std::set<std::string_view> added;
  for (const ModelFamily family : model_families()) {
    for (const DimensionEntry& entry : dimension_entries(family)) {
      const bool has_own_flag = entry.name == kFusedOpsDimension ||
                                entry.name == kFloat32Gradients || entry.name == kRoutingSkew;
      if (has_own_flag || !added.insert(entry.name).second) continue;
      add_dimension(app, entry);
    }
  }
}

void ModelFlags::add_dimension(CLI::App& app, const DimensionEntry& entry) {
  const std::string key(entry.name);
  const std::string description(entry.description);
  const bool may_be_range = key == "batch" || key == "tokens";
  CLI::Option* option =
      may_be_range
          ? app.add_option_function<std::string>(
                flag_of(entry.name),
                [this, key](const std::string& text) { read_number_or_range(key, text); },
                description)
          : app.add_option_function<std::int64_t>(
                flag_of(entry.name),
                [this, key](const std::int64_t& value) { dimensions_[key] = value; }, description);
  option->group("Dimensions (default: the preset's)");
}

// Throws CLI11's error if the value cannot be parsed.
void ModelFlags::read_number_or_range(const std::string& name, const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto least = number_of(std::string_view(text).substr(0, colon));
  const auto most =
      colon == std::string::npos ? least : number_of(std::string_view(text).substr(colon + 1));
  if (!least || !most) {
    throw CLI::ConversionError(
        text, flag_of(name) + " (a number such as 8192 or 8k, or a range such as 1:64)");
  }
  if (colon == std::string::npos) {
    dimensions_[name] = *least;
    return;
  }
  if (*least < 1 || *most < *least) {
    throw CLI::ValidationError(flag_of(name), "'" + text +
                                                  "' is not a range; give MIN:MAX with MIN at "
                                                  "least 1, such as 1:64");
  }
  if (range_ && range_->name != name) {
    throw CLI::ValidationError(flag_of(name), "only one dimension may be a range; " +
                                                  flag_of(range_->name) + " is one already");
  }
  range_ = DimensionRange{name, *least, *most};
}

void ModelFlags::add_world(CLI::App& app) {
  app.add_option("--world", world_,
                 "Number of ranks that shard parameters, gradients and optimizer state; all "
                 "figures are for one rank. With --model, the same as --parallel fsdp=N; with "
                 "--trace, an estimate whose times exclude communication")
      ->check(CLI::Range(1, static_cast<int>(kMaxWorld)));
}

// Returns the given dimensions, and fsdp if --world was given. --world 1 sets fsdp to 1. This does
// not shard the model, but overrides the layout of a plan.
std::map<std::string, std::int64_t> ModelFlags::sharded_dimensions() const {
  std::map<std::string, std::int64_t> dimensions = dimensions_;
  if (!world_) return dimensions;
  require_one_sharding(*world_, dimensions_);
  if (layout_text(dimensions_).empty()) dimensions["fsdp"] = *world_;
  return dimensions;
}

std::map<std::string, std::int64_t> ModelFlags::layout_alone() const {
  const auto names = std::views::keys(dimensions_);
  if (!model_.empty() || range_ || !std::ranges::all_of(names, is_of_layout)) {
    throw UsageError(
        "--links does not depend on a model; leave out --model and its dimensions, and choose "
        "ranks with --parallel");
  }
  return dimensions_;
}

std::optional<ModelSpec> ModelFlags::spec_over(int ranks) const {
  if (!layout_text(dimensions_).empty()) return std::nullopt;
  ModelFlags sharded = *this;
  sharded.world_ = ranks;
  return sharded.spec();
}

std::optional<int> ModelFlags::ranks_of_trace(const std::string& trace_file) const {
  if (trace_file.empty()) return std::nullopt;
  return world_;
}

ModelSpec ModelFlags::spec() const {
  if (range_) {
    throw UsageError(flag_of(range_->name) + " " + std::to_string(range_->least) + ":" +
                     std::to_string(range_->most) +
                     " is a range; only rematch search --maximize tries several values");
  }
  std::map<std::string, std::int64_t> overrides = sharded_dimensions();
  if (model_.empty()) throw UsageError("no model given; rematch list shows the models");
  if (overrides.contains(std::string(kRoutingSkew))) require_experts(model_, dtype_);
  if (ops_ != "eager" && ops_ != "fused") {
    throw UsageError("unknown ops '" + ops_ + "'; allowed: eager, fused");
  }
  if (!gradient_dtype_.empty() && gradient_dtype_ != dtype_ && gradient_dtype_ != "float32") {
    throw UsageError("a " + dtype_ + " model cannot keep gradients in '" + gradient_dtype_ +
                     "'; --gradient-dtype allows float32" +
                     (dtype_ == "float32" ? "" : ", " + dtype_));
  }
  if (!gradient_dtype_.empty()) {
    overrides[std::string(kFloat32Gradients)] = gradient_dtype_ == "float32" ? 1 : 0;
  }
  if (ops_ == "fused") overrides[std::string(kFusedOpsDimension)] = 1;
  if (!video_.empty()) {
    const ModelFamily family = require<ModelSpec>(make_spec(model_, {}, dtype_)).family;
    const auto grid =
        require<std::map<std::string, std::int64_t>>(video_dimensions(video_, family));
    overrides.insert(grid.begin(), grid.end());
  }
  return require<ModelSpec>(make_spec(model_, overrides, dtype_));
}

ModelSpec ModelFlags::spec_on(const std::string& model,
                              const std::map<std::string, std::int64_t>& dimensions,
                              const std::string& dtype) const {
  ModelFlags all = *this;
  all.model_ = model;
  if (dtype_option_->count() == 0) all.dtype_ = dtype;
  all.dimensions_ = sharded_dimensions();
  all.world_.reset();
  all.dimensions_.insert(dimensions.begin(), dimensions.end());
  return all.spec();
}

std::optional<ModelSpec> ModelFlags::spec_of_fused_ops() const {
  if (ops_ == "fused") return std::nullopt;
  ModelFlags fused = *this;
  fused.ops_ = "fused";
  return fused.spec();
}

std::optional<ModelFlags> ModelFlags::with_kept_logits() const {
  const std::string option(kKeptLogitsName);
  if (ops_ != "fused" || dimensions_.contains(option)) return std::nullopt;
  const ModelSpec example = range_ ? spec_at(range_->least) : spec();
  if (!trains_on_text(example.family)) return std::nullopt;
  ModelFlags kept = *this;
  kept.dimensions_[option] = 1;
  return kept;
}

ModelSpec ModelFlags::spec_with(const std::string& dimension, std::int64_t value) const {
  ModelFlags changed = *this;
  changed.range_.reset();
  changed.dimensions_[dimension] = value;
  return changed.spec();
}

ModelSpec ModelFlags::spec_with_layers(std::int64_t layers) const {
  const std::int64_t all = spec().dimensions.at("layers");
  if (layers >= all) {
    throw UsageError("--measure-layers " + std::to_string(layers) + " must be fewer than the " +
                     std::to_string(all) + " layers of " + model_ + "; leave it out");
  }
  return spec_with("layers", layers);
}

ModelSpec ModelFlags::spec_with_tokens(std::int64_t tokens) const {
  ModelFlags fewer = *this;
  fewer.video_.clear();
  for (const char* name : {"frames", "height", "width"}) fewer.dimensions_.erase(name);
  return fewer.spec_with("tokens", tokens);
}

// Tells the user which grid was chosen. The grid does not change the time of a block, but changes
// the rotary table and therefore the bits of the results.
void ModelFlags::say_grid(const ModelSpec& spec) const {
  const bool has_tokens = dimensions_.contains("tokens") || (range_ && range_->name == "tokens");
  if (!has_tokens || !video_.empty()) return;
  for (const char* name : {"frames", "height", "width"}) {
    if (!spec.dimensions.contains(name) || dimensions_.contains(name)) return;
  }
  const auto extent = [&spec](const char* name) {
    return std::to_string(spec.dimensions.at(name));
  };
  say("note: --tokens " + extent("tokens") + " means a token grid of " + extent("frames") + " x " +
      extent("height") + " x " + extent("width") +
      " (frames x height x width); --video or --frames, --height and --width "
      "choose another");
}

std::vector<std::string> ModelFlags::given_for_model() const {
  std::vector<std::string> given;
  if (name_ == Name::kFlag && !model_.empty()) given.emplace_back("--model");
  if (dtype_option_->count() > 0) given.emplace_back("--dtype");
  if (ops_ != "eager") given.emplace_back("--ops");
  if (!video_.empty()) given.emplace_back("--video");
  if (range_) given.push_back(flag_of(range_->name));
  bool has_layout = false;
  for (const auto& [name, value] : dimensions_) {
    if (is_of_layout(name)) {
      has_layout = true;
    } else if (name != kAccumulate) {
      given.push_back(flag_of(name));
    }
  }
  if (has_layout) given.emplace_back("--parallel");
  return given;
}

void ModelFlags::require_flags_of_trace() const {
  if (dimensions_.contains(std::string(kRoutingSkew))) {
    throw UsageError(
        "--routing-skew needs --model: a stored trace contains the rows that experts got when it "
        "was recorded");
  }
  if (!gradient_dtype_.empty()) {
    throw UsageError(
        "--gradient-dtype needs --model: a stored trace contains the gradients of the step that "
        "was recorded");
  }
  const std::vector<std::string> given = given_for_model();
  if (given.empty()) return;
  throw UsageError("--trace already gives the model and its dimensions; leave out " +
                   joined(given) + ", or record another trace");
}

std::optional<std::int64_t> ModelFlags::micro_batches_of_trace() const {
  const auto given = dimensions_.find(std::string(kAccumulate));
  if (given == dimensions_.end()) return std::nullopt;
  if (given->second >= 1 && given->second <= kMaxMicroBatches) return given->second;
  throw UsageError("--accumulate " + std::to_string(given->second) +
                   " is out of range; a step has at least 1 micro-batch, and at most " +
                   std::to_string(kMaxMicroBatches));
}

Trace obtain_trace(const ModelFlags& flags, const std::string& trace_file) {
  if (!trace_file.empty()) {
    flags.require_flags_of_trace();
    Trace trace = require_json_file(trace_file, trace_from_json);
    require_one_sharding(flags.ranks_of_trace(trace_file).value_or(1), trace.dimensions);
    return with_micro_batches(std::move(trace), flags.micro_batches_of_trace());
  }
  const ModelSpec spec = flags.spec();
  flags.say_grid(spec);
  return record_trace(spec);
}

}  // namespace rematch
