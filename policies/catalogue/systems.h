// The spellings that training systems use for their own modes: each stands for a policy of the
// catalogue, or is refused with the reason. The table is also what `rematch list --systems` prints.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policies/catalogue/call.h"
#include "policies/plan/policy.h"
#include "policies/plan/rejected.h"

namespace rematch {

// Where a mode's recompute ends. Megatron-LM and DeepSpeed checkpoint reentrantly and re-run a
// region to its end; torchtitan switches early stop off, but for its graph trainer, whose graph has
// only what backward reads; all others leave it on.
enum class EarlyStop : std::uint8_t { kAsInPolicy, kOn, kOff };

// Where a row's trap is said: to whoever uses the row too, or in the list alone, because it is
// about other arguments than may have been given.
enum class TrapSaid : std::uint8_t { kWhenUsed, kInList };

struct SystemEntry {
  std::string_view system;       // "torchtune"
  std::string_view spelling;     // "torchtune(ac_mode=selective,ac_option=N)"
  std::string_view stands_for;   // "nth_last({N})"; empty: refused
  std::string_view description;  // what it does there, one line
  std::string_view trap;  // what it is known to get wrong, or why it is refused; may be empty
  EarlyStop early_stop = EarlyStop::kAsInPolicy;  // of the policy it stands for, or its own
  TrapSaid trap_said = TrapSaid::kWhenUsed;
};

// Grouped by system. An upper-case letter in a spelling takes any value.
std::span<const SystemEntry> system_entries();

// The systems that have a mode which stands for this name of the catalogue, in the table's order.
std::vector<std::string_view> systems_with(std::string_view policy_name);

// The row that a call is written after; null: none.
const SystemEntry* find_system_entry(const Call& call);

// A policy's name as the catalogue spells it, whichever system's spelling was typed: "nth_last(2)"
// of "torchtune(ac_mode=selective,ac_option=2)"; "" where that is refused.
std::string catalogue_spelling(std::string_view policy);

// The mode of any system nearest to a slip of the hand.
std::optional<std::string> nearest_spelling(std::string_view text);

// Does the call begin with a system's name: "titan:full", "torchtune(...)".
bool is_system_spelling(const Call& call);

// The policy that a system's spelling stands for, under the name that was typed. Rejected: what is
// refused, what the policy rejects, and what the system does not have, with what it does have.
std::variant<Policy, Rejected> parse_system_spelling(std::string_view text, const Call& call);

}  // namespace rematch
