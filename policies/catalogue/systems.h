// Defines the spellings of training systems' own modes. Each spelling stands for a policy of the
// catalogue, or is rejected with a reason. `rematch list --systems` prints the table.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policies/base/rejected.h"
#include "policies/catalogue/call.h"
#include "policies/plan/plan.h"
#include "policies/plan/policy.h"
#include "policies/trace/trace.h"

namespace rematch {

// A system's use of early stop. Megatron-LM and DeepSpeed checkpoint reentrantly and re-run
// a region to its end. torchtitan turns early stop off, except in its graph trainer, whose graph
// contains only what backward reads. All other systems leave early stop on.
enum class EarlyStop : std::uint8_t { kAsInPolicy, kOn, kOff };

// Says whether a pitfall is shown each time the mode is used, or only in the list of systems. A
// pitfall about arguments that the user may not have given is shown only in the list.
enum class PitfallShown : std::uint8_t { kWhenUsed, kInList };

// A known pitfall of a mode, or the reason for rejecting the mode. The text may be empty.
struct Pitfall {
  // NOLINTNEXTLINE(google-explicit-constructor): most pitfalls are a text alone
  constexpr Pitfall(const char* words, Policy::Concern about = Policy::Concern::kEveryModel,
                    PitfallShown when = PitfallShown::kWhenUsed)
      : text(words), concern(about), shown(when) {}

  std::string_view text;
  Policy::Concern concern;
  PitfallShown shown;
};

struct SystemEntry {
  std::string_view system;    // "torchtune"
  std::string_view spelling;  // "torchtune(ac_mode=selective,ac_option=N)"
  // equivalent policy of the catalogue, such as "nth_last({N})"; if empty, the mode is rejected
  std::string_view stands_for;
  std::string_view description;  // what the mode does in its system, in one line
  Pitfall pitfall;
  EarlyStop early_stop = EarlyStop::kAsInPolicy;
  // Configuration lines that select the mode, for the place that TrainingSystem::where describes.
  // {N} stands for the value of N in the spelling. {S;, } stands for the items of the list S,
  // joined by ", ". Empty if the mode needs no lines, or if no release has the mode.
  std::string_view configuration = {};
  std::string_view versions = {};  // the versions that have the mode; empty: all
  // Returns why the system refuses these arguments of the mode, or "" if it accepts them. Null if
  // the system accepts all arguments that the policy accepts.
  std::string_view (*refusal)(const std::vector<std::string_view>& words) = nullptr;
};

// A system that has modes in the table. Every system recomputes whole regions.
struct TrainingSystem {
  std::string_view name;  // SystemEntry::system
  // the system's name in `rematch export --to` and `rematch search --for`; may be empty
  std::string_view target;
  std::string_view where;   // the place where users write the configuration of a mode
  std::string_view source;  // the repository from which the modes are taken, as of mid 2026
};

// Returns all systems in display order.
std::span<const TrainingSystem> training_systems();

// Returns the system with this target, or null.
const TrainingSystem* system_of_target(std::string_view target);

class Resolver;  // policies/catalogue/resolve.h

// A mode of a system with all values filled in.
struct FilledMode {
  const SystemEntry* entry = nullptr;
  std::string spelling;
  std::string configuration;
};

// Returns the mode that a spelling names, with its values. Returns nullopt if the spelling names no
// mode.
std::optional<FilledMode> filled_mode(std::string_view spelling);

// Returns the pitfall of the mode that a spelling names. Returns "" if the mode has no known
// pitfall, or if the spelling names no mode.
std::string_view pitfall_of(std::string_view spelling);

// Returns whether a spelling names a mode that has no equivalent policy here.
bool is_refused_mode(std::string_view spelling);

// Replaces the placeholders in a configuration by their values.
std::string filled_configuration(std::string_view pattern,
                                 const std::map<std::string, std::string>& values);

// Returns the modes of a system that have a configuration. A mode with placeholders is returned
// once for each set of values that the trace's model allows, such as each number of layers. Returns
// an empty list for an unknown system. `resolver` must belong to `trace`.
std::vector<FilledMode> filled_modes(std::string_view system, const Trace& trace,
                                     const Resolver& resolver);

// Returns all entries, grouped by system. In a spelling, an upper-case letter stands for any value.
std::span<const SystemEntry> system_entries();

// Returns the systems that have a mode for this catalogue policy, in the table's order.
std::vector<std::string_view> systems_with(std::string_view policy_name);

// Returns whether a policy has the spelling of another training system's mode: "titan:full",
// "remat_minimal", or one of these inside another policy, "offload_inputs(remat_minimal)".
bool is_mode_of_system(std::string_view policy);

// Returns whole_region for modes of other training systems, because no other system has on_demand.
// Returns on_demand for all other policies.
Schedule usual_schedule(std::string_view policy);

// Returns "this engine only" if the policy is a mode of another system but runs on_demand, because
// its figures then do not apply to the other system. Otherwise returns "".
std::string_view schedule_note(std::string_view policy, Schedule schedule);

// Returns the mode that the user meant, if only the system's name is misspelled.
std::optional<std::string> nearest_spelling(std::string_view text);

// Returns the policy for a system's spelling, named after the spelling. Values may be quoted, and
// may be Python's True, False and None. For the framework modalities, also accepts its
// configuration keys, but ignores layers_fqn, because a policy applies to all blocks. Returns
// Rejected if the mode is unknown or unsupported, or if the policy rejects the arguments. Returns
// nullopt unless `call` begins with a system's name, as "titan:full" does.
std::optional<std::variant<Policy, Rejected>> parse_system_spelling(std::string_view text,
                                                                    const Call& call);

}  // namespace rematch
