#include "harness/cli/files/profile_card.h"

#include <algorithm>

#include "harness/cli/exit_code.h"
#include "policies/base/text.h"
#include "policies/predict/device/roofline.h"

namespace rematch {
namespace {

// Profiles in format versions 1.0 and 1.1 do not name a card.
bool is_of_unknown_card(const Profile& profile) {
  return profile.device == "cuda" && profile.card.empty();
}

// Returns the name of the device whose times the file contains, as written in the file.
std::string whose(const Profile& profile) {
  if (!profile.card.empty()) return profile.card;
  return is_of_unknown_card(profile) ? "a GPU without a name" : profile.device;
}

std::string problem(const Profile& profile, const std::string& file, const std::string& wanted,
                    const std::string& remedy) {
  return "'" + file + "' has times of " + whose(profile) + ", and " + wanted + "; " + remedy +
         ", or use these times anyway with --any-card";
}

std::optional<std::string> not_of_device(const Profile& profile, const std::string& file,
                                         const std::string& device) {
  const DeviceSheet* sheet = sheet_of(profile);
  if (sheet != nullptr && sheet->name == device) return std::nullopt;
  return problem(profile, file, "--device says " + device,
                 "leave out --profile for the data sheet's times");
}

std::optional<std::string> not_of_doctor(const Profile& profile, const std::string& file,
                                         const std::string& card) {
  const DeviceSheet* sheet = sheet_of(profile);
  const DeviceSheet* sheet_of_doctor = sheet_of_card(card);
  const bool is_another = profile.card.empty() ? sheet != nullptr && sheet_of_doctor != nullptr &&
                                                     sheet != sheet_of_doctor
                                               : profile.card != card;
  if (!is_another) return std::nullopt;
  return problem(profile, file, "--doctor's machine has " + card,
                 "make the profile there with rematch profile --device cuda");
}

}  // namespace

std::optional<std::string> other_card_problem(const Profile& profile, const std::string& file,
                                              const CardInQuestion& wanted) {
  if (!wanted.device.empty()) return not_of_device(profile, file, wanted.device);
  if (is_of_unknown_card(profile)) return std::nullopt;
  if (!wanted.doctor.empty()) return not_of_doctor(profile, file, wanted.doctor);
  const auto& here = wanted.cards;
  if (profile.card.empty() || here.empty()) return std::nullopt;
  if (std::find(here.begin(), here.end(), profile.card) != here.end()) return std::nullopt;
  return problem(profile, file, "this machine has " + joined(here),
                 "make a profile here with rematch profile --device cuda");
}

void require_card(const Profile& profile, const std::string& file, const CardInQuestion& wanted) {
  if (const auto problem = other_card_problem(profile, file, wanted)) throw UsageError(*problem);
}

}  // namespace rematch
