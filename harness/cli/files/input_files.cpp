#include "harness/cli/files/input_files.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <future>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "harness/cli/files/output.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/flags/require.h"
#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/plan/plan_json.h"
#include "policies/predict/device/links.h"
#include "policies/search/front/front_json.h"
#include "policies/trace/compiled_graph.h"
#include "policies/trace/measured_profile.h"
#include "policies/trace/profile_json.h"
#include "reports/record/json/record_json.h"

namespace rematch {

void require_links(const std::string& path, const std::string& device) {
  const LinkProfile links = read_links(path).links;
  const DeviceSheet* sheet = sheet_of_card(links.device);
  if (device.empty() || links.device == device || (sheet != nullptr && sheet->name == device)) {
    return;
  }
  print_warnings({"the links of '" + path + "' were measured on " + links.device +
                  ", and op times are from " + device + "; step times will mix both devices"});
}

NamedLinks read_links(const std::string& path) {
  LinkProfile links = require_json_file(path, links_from_json);
  std::string name = path + ": " + links_in_words(links);
  return {std::move(links), std::move(name)};
}

NamedCeilings read_ceilings(const std::string& path) {
  Ceilings ceilings = require_json_file(path, ceilings_from_json);
  std::string name = path + ": measured on " + ceilings.card;
  if (!ceilings.source.empty()) name += "; " + ceilings.source;
  return {std::move(ceilings), std::move(name)};
}

void require_ceilings(const std::string& path, const std::string& device, bool has_profile) {
  if (has_profile || find_device_sheet(device) == nullptr) {
    throw UsageError("--ceilings replaces the rates of a data sheet; use it with --device h200");
  }
  const std::string card = read_ceilings(path).ceilings.card;
  const DeviceSheet* sheet = sheet_of_card(card);
  if (sheet != nullptr && sheet->name == device) return;
  print_warnings({"the ceilings of '" + path + "' were measured on " + card + ", but --device is " +
                  device + "; step times are those of " + card});
}

Profile sheet_profile(const Trace& trace, const std::string& device, const RateFiles& files) {
  MeasuredRates measured;
  if (!files.links.empty()) {
    measured.links = read_links(files.links);
    if (const auto problem = links_problem(measured.links->links, trace)) {
      throw UsageError("'" + files.links + "' cannot be used: " + *problem);
    }
  }
  if (!files.ceilings.empty()) measured.ceilings = read_ceilings(files.ceilings);
  return roofline_profile(trace, *find_device_sheet(device), measured);
}

Profile require_profile(const std::string& path, const Trace& trace) {
  Profile profile = profile_for_trace(require_json_file(path, profile_from_json), trace);
  if (const auto problem = profile_problem(profile, trace)) throw UsageError(*problem);
  return profile;
}

Report read_report(const std::string& path) {
  try {
    return report_from_text(read_text_file(path), path);
  } catch (const FileError& error) {
    throw UsageError(error.what());
  }
}

std::vector<Report> read_reports(const std::vector<std::string>& paths) {
  constexpr std::size_t kMaxReaders = 8;
  std::vector<Report> reports(paths.size());
  std::vector<std::exception_ptr> errors(paths.size());
  std::atomic<std::size_t> next{0};
  const auto read_some = [&] {
    for (std::size_t index = next++; index < paths.size(); index = next++) {
      try {
        reports[index] = read_report(paths[index]);
      } catch (...) {
        errors[index] = std::current_exception();
      }
    }
  };
  const std::size_t num_cores = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::future<void>> readers;
  for (std::size_t reader = 1; reader < std::min({num_cores, kMaxReaders, paths.size()});
       ++reader) {
    readers.push_back(std::async(std::launch::async, read_some));
  }
  read_some();
  for (std::future<void>& reader : readers) reader.get();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return reports;
}

std::pair<Report, Report> read_two_reports(const std::string& first, const std::string& second) {
  std::vector<Report> reports = read_reports({first, second});
  return {std::move(reports[0]), std::move(reports[1])};
}

namespace {

constexpr const char* kSimple = "simple";

bool is_of_kind(const Json& json, const std::string& kind) {
  return json.is_object() && json.contains("schema") && json["schema"].is_string() &&
         json["schema"].get<std::string>().starts_with("rematch." + kind + "/");
}

GivenPlan point_of(const Json& json, const std::string& file, const std::string& number) {
  FrontRecord record = front_from_json(json);
  if (number == kSimple && record.simple) {
    return {std::move(record.simple->point.plan), Schedule::kWholeRegion};
  }
  std::vector<FrontPoint> points = std::move(record.front.points);
  const std::string range = "its points are 0 to " + std::to_string(points.size() - 1) +
                            (record.simple ? std::string(", and ") + kSimple : "");
  if (number.empty()) {
    throw UsageError("'" + file + "' is a front; choose a point: " + file + "#0; " + range);
  }
  const auto index = parse_number<std::int64_t>(number);
  if (!index || *index < 0 || *index >= std::ssize(points)) {
    throw UsageError("'" + file + "' has no point " + number + "; " + range);
  }
  return {std::move(points[static_cast<std::size_t>(*index)].plan), record.front.schedule};
}

// Throws UsageError if `name` is a plan, a front or a report.
void reject_plan(const std::string& name) {
  const std::string file = name.substr(0, name.rfind('#'));
  std::error_code ignored;
  if (!file.ends_with(".json") || !std::filesystem::is_regular_file(file, ignored)) return;
  const Json json = require_json_file(file);
  const std::string not_a_policy = ", not a policy";
  if (is_of_kind(json, "report")) throw UsageError(in_quotes(file) + " is a report" + not_a_policy);
  if (is_of_kind(json, "plan")) {
    throw UsageError(in_quotes(file) + " is a plan" + not_a_policy + "; use --plan " + file);
  }
  if (!is_of_kind(json, "front")) return;
  if (name == file) {
    throw UsageError(in_quotes(file) + " is a front" + not_a_policy +
                     "; choose one of its points: --plan " + file + "#0");
  }
  static_cast<void>(require_plan(name));  // rejects a point that the front does not have
  throw UsageError(in_quotes(name) + " is a plan" + not_a_policy + "; use --plan " + name);
}

void require_preset(const std::string& model) {
  if (is_preset(model)) return;
  throw UsageError(
      "the plan was made for " + model +
      ", a model of your own; give the trace of that model with --trace. To run the plan, "
      "use package rematch in Python, or a file from rematch export");
}

}  // namespace

void reject_compiled_graph(const std::map<std::string, std::int64_t>& dimensions,
                           const std::string& user) {
  if (!is_compiled_graph(dimensions)) return;
  throw UsageError("the plan is for the graph of a compiled model, and " + user +
                   " runs the ops of an eager model: give the plan to rematch.partitioner in "
                   "Python, or make a plan from rematch.trace(model, step)");
}

bool is_preset(const std::string& model) {
  return std::any_of(presets().begin(), presets().end(),
                     [&](const PresetEntry& preset) { return preset.name == model; });
}

GivenPlan require_given_plan(const std::string& name) {
  const std::size_t hash = name.rfind('#');
  const std::string file = name.substr(0, hash);
  const std::string number = hash == std::string::npos ? "" : name.substr(hash + 1);
  return require_json_file(file, [&](const Json& json) {
    if (is_of_kind(json, "front")) return point_of(json, file, number);
    if (is_of_kind(json, "report")) {
      throw UsageError("'" + file +
                       "' is a report, which contains no plans; give a plan from rematch "
                       "plan, or a point of a front from rematch search");
    }
    if (!number.empty()) {
      throw UsageError("'" + file + "' is a plan, not a front: it has no points; leave out #" +
                       number);
    }
    return GivenPlan{plan_from_json(json), std::nullopt};
  });
}

std::vector<GivenPlan> require_given_plans(const std::vector<std::string>& names) {
  std::vector<GivenPlan> plans;
  for (const std::string& name : names) plans.push_back(require_given_plan(name));
  return plans;
}

Plan require_plan(const std::string& name) { return require_given_plan(name).plan; }

std::optional<FrontSetting> setting_of_fronts(const std::vector<std::string>& names) {
  std::optional<FrontSetting> setting;
  for (const std::string& name : names) {
    const std::string file = name.substr(0, name.rfind('#'));
    const Json json = require_json_file(file);
    if (!is_of_kind(json, "front")) continue;
    const FrontRecord front = require_readable(file, [&] { return front_from_json(json); });
    const bool is_simple = name.ends_with(std::string("#") + kSimple);
    const FrontSetting found{front.layout.empty() ? front.world : 1, front.optimizer,
                             is_simple ? Schedule::kWholeRegion : front.front.schedule};
    if (setting && *setting != found) {
      throw UsageError("'" + file + "' is a front of " + std::to_string(found.world) +
                       " ranks, optimizer " + std::string(to_string(found.optimizer)) +
                       " and schedule " + std::string(to_string(found.schedule)) +
                       ", but another given front differs; predict the fronts one by one");
    }
    setting = found;
  }
  return setting;
}

void reject_plans(const std::string& policies) {
  const auto parts = split_at_commas(policies);
  if (!parts) return;  // the parser of policies reports the brackets
  for (const std::string_view part : *parts) reject_plan(std::string(part));
}

const Plan* first_of(const std::vector<GivenPlan>& plans) {
  return plans.empty() ? nullptr : &plans.front().plan;
}

ModelSpec spec_for(const ModelFlags& flags, const Plan* plan) {
  if (!flags.model().empty() || plan == nullptr) return flags.spec();
  if (is_compiled_graph(plan->dimensions)) {
    throw UsageError(
        "the plan is for the graph of a compiled model: give the graph's file to "
        "--trace. To run the plan, give it to rematch.partitioner in Python");
  }
  require_preset(plan->model);
  return flags.spec_on(plan->model, plan->dimensions, plan->dtype);
}

ModelSpec model_for(const ModelFlags& flags, const Plan* plan) {
  ModelSpec spec = spec_for(flags, plan);
  if (!flags.model().empty()) flags.say_grid(spec);
  return spec;
}

void require_same_model(const Plan& plan, const std::string& model,
                        const std::map<std::string, std::int64_t>& dimensions,
                        const std::string& dtype) {
  std::string differences;
  const auto hold = [&](const std::string& what, const std::string& said,
                        const std::string& given) {
    if (said == given) return;
    differences.append(differences.empty() ? "" : "; ");
    differences.append("the plan says ").append(what).append(" ").append(said);
    differences.append(", given is ").append(given);
  };
  hold("model", plan.model, model);
  hold("dtype", plan.dtype, dtype);
  std::set<std::string> names;
  for (const auto& [name, value] : plan.dimensions) names.insert(name);
  for (const auto& [name, value] : dimensions) names.insert(name);
  const auto value_of = [](const std::map<std::string, std::int64_t>& values,
                           const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string("none") : std::to_string(found->second);
  };
  for (const std::string& name : names) {
    hold(name, value_of(plan.dimensions, name), value_of(dimensions, name));
  }
  if (differences.empty()) return;
  throw UsageError(differences + "; leave the model and its flags out to use the plan's model");
}

void require_same_trace(const Plan& plan, const std::string& name, const Trace& trace) {
  if (const auto problem = wrong_trace(plan, name, trace, trace_sha256(trace))) {
    throw UsageError(problem->message);
  }
}

}  // namespace rematch
