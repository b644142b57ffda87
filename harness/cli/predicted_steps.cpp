#include "harness/cli/predicted_steps.h"

#include <functional>
#include <utility>

#include "harness/cli/files/output.h"
#include "harness/cli/flags/require.h"
#include "harness/cli/libtorch/predict_model.h"
#include "models/preset/parallel.h"
#include "policies/base/field_value.h"
#include "policies/base/format.h"
#include "policies/base/json.h"
#include "policies/base/text.h"
#include "policies/predict/device/roofline.h"
#include "policies/predict/pipeline/stage_profiles.h"
#include "policies/predict/pipeline/step_time.h"
#include "policies/trace/accumulation.h"
#include "policies/trace/by_phase.h"
#include "policies/trace/compiled_graph.h"
#include "policies/trace/routing_skew.h"
#include "reports/render/tables/front_table.h"

namespace rematch {
namespace {

template <class Member>
Json traffic_to_json(const Traffic& traffic, Member member) {
  Json json = Json::object();
  for (const Phase phase : kPhases) {
    Json& kinds = json[std::string(to_string(phase))] = Json::object();
    for (const auto& [kind, issued] : traffic[static_cast<std::size_t>(phase)]) {
      kinds[std::string(to_string(kind))] = to_value(issued.*member);
    }
  }
  return json;
}

constexpr const char* kPredictionSchema = "rematch.prediction/1.0";

bool fits(const PredictedStep& step, const CardMemory& card) {
  const Bytes at_boundary = step.memory.peak_allocated.value_or(Bytes{});
  return at_boundary + step.memory.peak_transient.value_or(Bytes{}) <= card.for_tensors();
}

// Returns the sentence that says what "fits" means: "Tensors may take 65.5 GiB: h100's 79.1 GiB
// less ...".
std::string fit_words(const std::optional<CardMemory>& card, std::size_t columns) {
  if (!card) return "";
  return table::format_line("fits: tensors may take " + format_bytes(card->for_tensors()) + ": " +
                                card->device + "'s " + format_bytes(card->memory) + " less " +
                                reserve_words(card->reserve),
                            TableFormat::kText, columns);
}

Json to_json(const PredictedStep& step, const Trace& trace, const std::optional<Profile>& profile,
             const FrontSetting& setting, const std::optional<CardMemory>& card) {
  if (!step.refused.empty()) {
    return {{"schema", kPredictionSchema},
            {"model", trace.model},
            {"policy", step.policy},
            {"status", "refused"},
            {"reason", step.refused}};
  }
  MemoryRecord memory = step.memory;
  memory.timeline.reset();
  const auto part_of_range = [&](auto part) {
    return step.range ? Json(std::invoke(part, *step.range).count()) : Json(nullptr);
  };
  return {
      {"schema", kPredictionSchema},
      {"model", trace.model},
      {"dtype", trace.dtype},
      {"dimensions", trace.dimensions},
      {"layout", layout_text(trace.dimensions)},
      {"policy", step.policy},
      {"status", "ok"},
      {"schedule", to_string(step.schedule)},
      {"plan_sha256", step.plan_sha256},
      {"world", setting.world * world_size(trace.dimensions)},
      {"optimizer", to_string(setting.optimizer)},
      {"predicted_ops", to_value(step.counts.by_op)},
      {"predicted_collectives", traffic_to_json(step.traffic, &Issued::count)},
      {"predicted_sent_bytes", traffic_to_json(step.traffic, &Issued::sent)},
      {"device", profile ? Json(profile->device) : Json(nullptr)},
      {"time_source", profile ? Json(to_string(profile->source)) : Json(nullptr)},
      {"links", profile && !profile->links.empty() ? Json(profile->links) : Json(nullptr)},
      {"ceilings", profile && !profile->ceilings.empty() ? Json(profile->ceilings) : Json(nullptr)},
      {"predicted_compute_ns", part_of_range(&StepRange::compute)},
      {"predicted_communication_ns", part_of_range(&StepRange::communication)},
      {"predicted_step_time_ns", part_of_range(&StepRange::nothing_overlaps)},
      {"predicted_overlapped_step_time_ns", part_of_range(&StepRange::all_overlaps)},
      {"device_memory_bytes", card ? Json(card->memory.count) : Json(nullptr)},
      {"reserve_bytes", card ? Json(card->reserve.total().count) : Json(nullptr)},
      {"fits_device", step.fits ? Json(*step.fits) : Json(nullptr)},
      {"predicted_memory", to_value(memory)}};
}

// Adds what a pipeline has beside other steps.
Json with_stages(Json json, const PredictedStep& step) {
  if (step.stages.empty()) return json;
  Json& stages = json["stages"] = Json::array();
  for (const PredictedStage& stage : step.stages) {
    MemoryRecord memory = stage.memory;
    memory.timeline.reset();
    stages.push_back(
        {{"rank", stage.rank},
         {"in_flight", stage.in_flight},
         {"forward_ns", stage.forward ? Json(stage.forward->count()) : Json(nullptr)},
         {"backward_ns", stage.backward ? Json(stage.backward->count()) : Json(nullptr)},
         {"predicted_memory", to_value(memory)}});
    if (stage.weights) stages.back()["weights_ns"] = stage.weights->count();
  }
  json["pipeline_schedule"] = step.schedule_name;
  json["bubble_ratio"] = step.bubble_ratio ? Json(*step.bubble_ratio) : Json(nullptr);
  return json;
}

// Returns a text such as "llama3_8b, bfloat16, batch 1, 8192 tokens, adamw; each of 8 ranks:
// fsdp=8".
std::string setting_words(const Trace& trace, const FrontSetting& setting) {
  std::string words = trace.model + ", " + trace.dtype;
  for (const char* name : {"batch", "tokens"}) {
    const auto found = trace.dimensions.find(name);
    if (found == trace.dimensions.end()) continue;
    words.append(", ").append(name).append(" ").append(std::to_string(found->second));
  }
  words += accumulation_words(trace.dimensions);
  words += compiled_graph_words(trace.dimensions);
  words += routing_skew_words(trace.dimensions);
  words.append(", optimizer ").append(to_string(setting.optimizer));
  if (const std::string layout = layout_text(trace.dimensions); !layout.empty()) {
    words += "; each of " + std::to_string(world_size(trace.dimensions)) + " ranks: " + layout;
  }
  if (setting.world > 1) {
    words +=
        "; one of " + std::to_string(setting.world) +
        " ranks, estimated: gathered parameters count as temporaries, communication not counted";
  }
  return words;
}

}  // namespace

std::optional<CardMemory> card_memory(const PredictFlags& flags, const Trace& trace,
                                      const std::optional<Profile>& profile, int world) {
  const DeviceSheet* sheet = find_device_sheet(flags.device);
  if (sheet == nullptr && profile) sheet = sheet_of(*profile);
  const std::optional<Bytes> asked = parse_reserve(flags.reserve);
  if (sheet == nullptr && asked) {
    throw UsageError("--reserve is subtracted from a card's memory; give --device h100");
  }
  if (sheet == nullptr) return std::nullopt;
  const int communicators = std::max(num_communicators(trace), world > 1 ? 1 : 0);
  return CardMemory{std::string(sheet->name), sheet->memory,
                    asked ? MemoryReserve{{}, {}, {}, *asked}
                          : usual_reserve(sheet, sheet->memory, communicators)};
}

std::vector<PredictedStep> with_refused(std::vector<PredictedStep> steps,
                                        const std::vector<RefusedPolicy>& refused) {
  for (const RefusedPolicy& policy : refused) {
    PredictedStep& step = steps.emplace_back();
    step.policy = policy.name;
    step.refused = policy.reason;
  }
  return steps;
}

ExitCode print_predictions(std::vector<PredictedStep> steps, const Trace& trace,
                           const std::optional<Profile>& profile, const FrontSetting& setting,
                           const std::optional<CardMemory>& card, bool as_json) {
  ExitCode code = ExitCode::kOk;
  for (PredictedStep& step : steps) {
    if (!step.refused.empty()) code = ExitCode::kSomePointsFailed;
    if (card && step.refused.empty()) step.fits = fits(step, *card);
  }
  if (as_json) {
    Json predictions = Json::array();
    for (const PredictedStep& step : steps) {
      predictions.push_back(with_stages(to_json(step, trace, profile, setting, card), step));
    }
    print_json(predictions);
    return code;
  }
  const std::size_t columns = terminal_columns();
  print(predictions_to_text(setting_words(trace, setting), steps, columns) +
        stages_to_text(steps, columns) +
        traffic_to_text(steps, profile ? &*profile : nullptr, columns) + fit_words(card, columns));
  return code;
}

std::vector<Profile> profiles_of_stages(const std::string& file, const ModelSpec& spec,
                                        const std::vector<const Trace*>& stages) {
  ModelSpec whole = spec;
  whole.rank = 0;
  for (const char* part : {"pp", "interleave", "zb", "first_layers", "last_layers"}) {
    whole.dimensions.erase(part);
  }
  for (const DimensionEntry& entry : stage_entries()) {
    whole.dimensions.erase(std::string(entry.name));
  }
  const Trace trace = trace_for_prediction(whole, OptimizerKind::kNothing, Sizes::kExact).trace;
  return require(stage_profiles(require_profile(file, trace), trace, stages));
}

Profile::Duration passing_between(const Trace& stage, const DeviceSheet* sheet) {
  return sheet == nullptr ? Profile::Duration{} : passing_time(stage, sheet->link_bytes_per_second);
}

}  // namespace rematch
