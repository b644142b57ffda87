// The spellings of training systems' own modes. Each stands for a policy of the catalogue or is
// refused with the reason. `rematch list --systems` prints the table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policies/catalogue/call.h"
#include "policies/plan/plan.h"
#include "policies/plan/policy.h"

namespace rematch {

// Megatron-LM and DeepSpeed checkpoint reentrantly and re-run a region to its end. torchtitan
// switches early stop off, except in its graph trainer, whose graph has only what backward reads.
// All others leave it on.
enum class EarlyStop : std::uint8_t { kAsInPolicy, kOn, kOff };

// When a trap is said: as a warning whenever the row is used, or in the list alone if it is about
// other arguments than may have been given.
enum class TrapSaid : std::uint8_t { kWhenUsed, kInList };

// A known mistake of a mode, or why it is refused; the text may be empty.
struct Trap {
  // NOLINTNEXTLINE(google-explicit-constructor): most traps are a text alone
  constexpr Trap(const char* words, Policy::Concern about = Policy::Concern::kEveryModel,
                 TrapSaid when = TrapSaid::kWhenUsed)
      : text(words), concern(about), said(when) {}

  std::string_view text;
  Policy::Concern concern;
  TrapSaid said;
};

struct SystemEntry {
  std::string_view system;       // "torchtune"
  std::string_view spelling;     // "torchtune(ac_mode=selective,ac_option=N)"
  std::string_view stands_for;   // "nth_last({N})"; empty: refused
  std::string_view description;  // what it does there, one line
  Trap trap;
  EarlyStop early_stop = EarlyStop::kAsInPolicy;
};

// Grouped by system. An upper-case letter in a spelling takes any value.
std::span<const SystemEntry> system_entries();

// The systems that have a mode which stands for this name of the catalogue, in the table's order.
std::vector<std::string_view> systems_with(std::string_view policy_name);

// The mode of any system nearest to a misspelled one.
std::optional<std::string> nearest_spelling(std::string_view text);

// The policy that a system's spelling stands for, under the name that was typed. True and False are
// true and false. modalities' components may be named as its configuration does, with layers_fqn,
// which is not read: every block is meant. Rejected: a mode
// that is refused or that the policy rejects, and one that the system does not have, with those it
// has. nullopt: `call` does not begin with a system's name, "titan:full" or "torchtune(...)".
std::optional<std::variant<Policy, Rejected>> parse_system_spelling(std::string_view text,
                                                                    const Call& call);

}  // namespace rematch
