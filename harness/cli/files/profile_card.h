// Keeps a search from being priced by the times of another card than the one that will run its
// plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/trace/profile.h"

namespace rematch {

// The card that plans are for. The first of these that is given decides.
struct CardInQuestion {
  std::string device;              // of --device, a data sheet's name: "h100"
  std::string doctor;              // of --doctor's file, as the driver names it
  std::vector<std::string> cards;  // of this machine, as the driver names them
};

// Why the times of `profile`, read from `file`, are another card's: whose they are, what was asked
// for or is here, and what to do, in one line. Nothing if they are not, or if the file does not
// say: a profile of a CPU is another device's only where --device names a card.
std::optional<std::string> other_card_problem(const Profile& profile, const std::string& file,
                                              const CardInQuestion& wanted);

// Throws UsageError where there is such a problem.
void require_card(const Profile& profile, const std::string& file, const CardInQuestion& wanted);

}  // namespace rematch
