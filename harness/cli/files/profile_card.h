// Prevents a search from using the times of a card other than the one that will run its plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/trace/profile.h"

namespace rematch {

// The card that plans are for. The first field that is given decides.
struct CardInQuestion {
  std::string device;              // a data sheet's name from --device, such as "h100"
  std::string doctor;              // the driver's name in --doctor's file
  std::vector<std::string> cards;  // cards of this machine, under the driver's names
};

// Returns one line if the times of `profile`, read from `file`, are another card's: whose they are,
// which card is required, and what to do. Absent if they match or the file does not tell. A profile
// of a CPU conflicts only with a card that --device names.
std::optional<std::string> other_card_problem(const Profile& profile, const std::string& file,
                                              const CardInQuestion& wanted);

// Throws UsageError if other_card_problem() returns a problem.
void require_card(const Profile& profile, const std::string& file, const CardInQuestion& wanted);

}  // namespace rematch
