// Checks that a search uses times of the card that will run its plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/trace/profile.h"

namespace rematch {

// The card that will run the plans. If several fields are set, the first of them decides.
struct CardInQuestion {
  std::string device;  // name of a data sheet, from --device, such as "h100"
  std::string doctor;  // the driver's name for the card, from the file given to --doctor
  std::vector<std::string> cards;  // cards of this machine, under their driver's names
};

// If `profile` was measured on a different card from `wanted`, returns a one-line message that
// names `file` and both cards. Otherwise returns nothing. A profile of a CPU, or of a GPU without a
// name, conflicts only with a card from --device.
std::optional<std::string> other_card_problem(const Profile& profile, const std::string& file,
                                              const CardInQuestion& wanted);

// Throws UsageError if other_card_problem() returns a problem.
void require_card(const Profile& profile, const std::string& file, const CardInQuestion& wanted);

}  // namespace rematch
