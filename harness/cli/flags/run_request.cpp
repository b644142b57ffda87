#include "harness/cli/flags/run_request.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "harness/cli/files/input_files.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/flags/require.h"
#include "models/preset/parallel.h"
#include "policies/base/text.h"
#include "policies/trace/routing_skew.h"

namespace rematch {
namespace {

const std::vector<std::string_view> kOptimizers = {"adamw", "adamw(learning_rate=1e-3)", "none"};
constexpr int kMaxRounds = 1000;

// Parses --rounds, such as "4" or "4:8", and the precision at which a run of 4 to 8 rounds may end
// early. Throws UsageError.
RoundRule parse_rounds(const std::string& rounds, const std::string& precision) {
  const std::size_t colon = rounds.find(':');
  const std::string_view text = rounds;
  const auto least = parse_number<std::int64_t>(text.substr(0, colon));
  const auto most =
      colon == std::string::npos ? least : parse_number<std::int64_t>(text.substr(colon + 1));
  if (!least || !most || *least < 0 || *most < *least || *most > kMaxRounds) {
    throw UsageError("--rounds '" + rounds + "' is neither a number from 0 to " +
                     std::to_string(kMaxRounds) + " nor a range such as 4:8");
  }
  return {.least = static_cast<int>(*least),
          .most = static_cast<int>(*most),
          .precision = parse_percent(precision)};
}

// A Slurm job array does not imply --shard, because one task of the array may run several
// independent commands.
Shard shard_of(const RunFlags& flags) {
  if (flags.shard != kSlurmShard) return require(parse_shard(flags.shard));
  return require(shard_of_slurm([](const char* name) { return std::getenv(name); }));
}

// Adds the policies that the flags name, preceded by the reference if it is not among them. Lists
// modes without an equivalent policy in `refused`.
void set_policies(const RunFlags& flags, RunRequest& request) {
  if (flags.policies.empty() && flags.plan_files.empty()) {
    throw UsageError("nothing to run: give --policy none,full,... or --plan FILE");
  }
  reject_plans(flags.policies);
  if (!flags.policies.empty()) {
    request.policies = require(parse_policies(flags.policies, request.refused));
  }
  Policy reference = require(parse_policy(flags.reference));
  request.reference = reference.name;
  if (request.policies.empty() && !request.refused.empty()) {
    throw UsageError(request.refused.front().reason);
  }
  const bool there =
      std::any_of(request.policies.begin(), request.policies.end(),
                  [&](const Policy& policy) { return policy.name == reference.name; });
  if (!there) request.policies.insert(request.policies.begin(), std::move(reference));
}

std::optional<int> pretended_rank_of(const RunFlags& flags, int world) {
  if (!flags.pretend_rank) return std::nullopt;
  if (world == 1) {
    throw UsageError("--pretend-rank requires a layout, such as --parallel tp=2");
  }
  if (*flags.pretend_rank >= world) {
    throw UsageError("--pretend-rank " + std::to_string(*flags.pretend_rank) +
                     ": the layout has the ranks 0 to " + std::to_string(world - 1));
  }
  return flags.pretend_rank;
}

void require_graph_of_one_rank(const RunRequest& request) {
  if (!request.cuda_graph) return;
  if (!is_on_cuda(request)) {
    throw UsageError("--cuda-graph needs a CUDA device; device is " + request.device +
                     "; leave it out, or use --device cuda");
  }
  if (!request.pretended_rank && world_size(request.model) > 1) {
    throw UsageError(
        "--cuda-graph can replay the step of a single rank only; leave it out, or measure one rank "
        "with --pretend-rank");
  }
}

// Rejects a routing skew, and flags that cannot be combined with --times-only or --in-process.
void require_consistent(const RunRequest& request) {
  if (const std::int64_t skew = request.model.option(std::string(kRoutingSkew)); skew > 0) {
    throw UsageError("routing skew " + routing_skew_text(skew) +
                     " is for predictions: in a run the data decides the routing, or "
                     "balanced_routing; give --routing-skew 1, or use rematch predict");
  }
  if (request.in_process && !request.pretended_rank && world_size(request.model) > 1) {
    throw UsageError(
        "--in-process can time the points of a single rank only; leave it out, or measure one rank "
        "with --pretend-rank");
  }
  if (!request.times_only) return;
  if (request.rounds.most == 0) {
    throw UsageError("--times-only measures nothing with --rounds 0; give 1 or more rounds");
  }
  if (request.num_repeats > 0 || !request.snapshot_file.empty()) {
    throw UsageError(
        "--repeat-reference and --snapshot need the exact pass, which --times-only skips; leave "
        "one of them out");
  }
}

// A snapshot shows only the last point of a run. The reference runs first, so the last point is the
// point that the user requested.
void require_one_point(const RunFlags& flags, const RunRequest& request) {
  if (flags.snapshot.empty()) return;
  if (!is_on_cuda(request)) {
    throw UsageError("--snapshot needs a CUDA device; device is " + request.device +
                     "; leave it out, or use --device cuda");
  }
  const std::size_t num_policies = flags.policies.empty() ? 0 : parse_list(flags.policies).size();
  if (num_policies + request.plans.size() != 1 || request.schedules.size() > 1 ||
      request.shard.count != 1) {
    throw UsageError(
        "--snapshot records one point: give one policy or plan, one schedule and no "
        "--shard");
  }
}

// Describes the first unknown flag or, if there is none, the first unexpected word.
std::string unknown_among(const CLI::App& run) {
  std::vector<std::string> left = run.remaining();
  const auto flag = std::find_if(left.begin(), left.end(),
                                 [](const std::string& word) { return word.starts_with("--"); });
  if (flag == left.end()) return in_quotes(left.empty() ? "" : left.front()) + " is not a flag";
  return "rematch run has no flag " + in_quotes(*flag) + did_you_mean(*flag, flags_of(run));
}

// Parses the arguments of `rematch run` into the variables of its flags. Throws UsageError.
void parse(const std::vector<std::string>& arguments, CLI::App& run) {
  try {
    run.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ExtrasError&) {
    throw UsageError(unknown_among(run));
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string(error.what()) + "; see rematch run --help");
  }
}

}  // namespace

OptimizerChoice parse_optimizer(const std::string& text) {
  if (const auto choice = optimizer_from_string(text)) return *choice;
  throw UsageError("unknown optimizer " + in_quotes(text) + did_you_mean(text, kOptimizers));
}

void set_measurement(const MeasureFlags& flags, RunRequest& request) {
  request.seed = static_cast<std::uint64_t>(flags.seed);
  request.num_threads = flags.num_threads;
  request.num_steps = flags.num_steps;
  request.num_timed_steps = flags.num_timed_steps;
  request.in_process = flags.in_process;
  request.rounds = parse_rounds(flags.rounds, flags.precision);
  request.timeout = parse_duration(flags.timeout);
  request.num_retries = flags.num_retries;
  request.fresh = flags.fresh;
  request.force = flags.force;
}

void set_kernels(const KernelFlags& flags, RunRequest& request) {
  request.attention = flags.attention;
  request.timed_as =
      flags.deterministic_times ? Determinism::kRepeatableBits : Determinism::kFastest;
}

RunRequest request_of(const RunFlags& flags) {
  RunRequest request;
  request.device = flags.device;
  request.allocator = flags.allocator;
  request.cuda_graph = flags.cuda_graph;
  request.plans = require_given_plans(flags.plan_files);
  request.model = spec_for(flags.model, first_of(request.plans));
  set_kernels(flags, request);
  set_policies(flags, request);
  request.schedules = parse_schedules(flags.schedule);
  request.no_effect = flags.allow_no_effect ? NoEffect::kAllow : NoEffect::kReject;
  request.optimizer = parse_optimizer(flags.optimizer);
  request.data_file = flags.data_file;
  if (!flags.data_file.empty() && !trains_on_text(request.model.family)) {
    throw UsageError("--data is the text that a language model trains on; " + request.model.preset +
                     " makes its own latents, so leave it out");
  }
  request.pretended_rank = pretended_rank_of(flags, static_cast<int>(world_size(request.model)));
  request.num_repeats = flags.num_repeats;
  request.shard = shard_of(flags);
  set_measurement(flags, request);
  request.times_only = flags.times_only;
  request.snapshot_file = flags.snapshot;
  require_one_point(flags, request);
  require_graph_of_one_rank(request);
  require_consistent(request);
  return request;
}

RunRequest request_of_arguments(const std::vector<std::string>& arguments) {
  CLI::App app;
  const RunFlags flags(app);
  parse(arguments, app);
  return request_of(flags);
}

RoundRule rounds_of_arguments(const std::vector<std::string>& arguments) {
  CLI::App app;
  app.allow_extras();
  const RunFlags flags(app);
  parse(arguments, app);
  return parse_rounds(flags.rounds, flags.precision);
}

}  // namespace rematch
