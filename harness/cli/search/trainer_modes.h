// Implements rematch search --for TRAINER, which chooses one of the trainer's own modes and prints
// the lines for its configuration.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/catalogue/systems.h"
#include "policies/search/front/front.h"
#include "policies/search/front/front_json.h"
#include "policies/search/region/span_options.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// A mode of the trainer for this model, with its predicted peak and step time.
struct TrainerMode {
  FilledMode mode;
  FrontPoint point;
};

// Predicts every mode of the trainer that applies to this model, under the trainer's schedule. If
// several modes have equal plans and versions, keeps only the first. Step times include all copies
// to the host at the rate of `link`; without a link, modes that copy are left out. Stops early once
// space.is_stopped() returns true.
std::vector<TrainerMode> judge_modes(const TrainingSystem& trainer, const Trace& trace,
                                     const Profile& profile, const SearchSpace& space,
                                     const std::optional<HostLink>& link);

// Returns the index of the fastest mode whose peak is at most `limit`. Among equally fast modes,
// chooses the mode with the lowest peak. With `versions`, considers only modes of these versions.
std::optional<std::size_t> fastest_mode(const std::vector<TrainerMode>& modes,
                                        std::optional<Bytes> limit,
                                        std::optional<std::string_view> versions = std::nullopt);

// Returns a text such as "the fastest of 33 modes of fastvideo that fits 65.5 GiB: fastvideo:full,
// peak 35.2 GiB, step 6.20 s", or "" if no mode fits. Needs no front.
std::string fastest_words(const TrainingSystem& trainer, const FrontRecord& record,
                          const std::vector<TrainerMode>& modes, std::optional<Bytes> limit);

// Returns the table of useful modes, then the answer, then the lines for the trainer's
// configuration. `modes` must not be empty. `exact` is the front's best plan within the same limit,
// if any plan fits it.
std::string trainer_to_text(const TrainingSystem& trainer, const FrontRecord& record,
                            const std::vector<TrainerMode>& modes, std::optional<Bytes> limit,
                            const std::optional<FrontPoint>& exact, std::size_t width);

// Returns what trainer_to_text() says, as JSON.
Json trainer_to_json(const TrainingSystem& trainer, const std::vector<TrainerMode>& modes,
                     std::optional<Bytes> limit, const std::optional<FrontPoint>& exact);

}  // namespace rematch
