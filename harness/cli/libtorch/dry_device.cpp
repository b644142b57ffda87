#include "harness/cli/libtorch/dry_device.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "harness/cli/flags/require.h"
#include "harness/measure/cuda_device.h"
#include "harness/process/process.h"
#include "policies/base/text.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCardVariable = "DRY_CUDA_CARD";
constexpr const char* kNumCardsVariable = "DRY_CUDA_DEVICES";
constexpr const char* kCardsOfNode = "8";  // one for each rank of --parallel
const std::vector<std::string_view> kCards = {"h100", "h200", "l40s", "a100"};

// Beside this program, as the build lays it out.
fs::path dry_program() { return fs::path(own_executable()).parent_path() / "dry" / "rematch"; }

void require_card(const std::string& card) {
  if (std::find(kCards.begin(), kCards.end(), card) != kCards.end()) return;
  throw UsageError("unknown card " + in_quotes(card) + did_you_mean(card, kCards));
}

}  // namespace

void continue_on_dry_device(const std::vector<std::string>& command, const std::string& card) {
  if (!card.empty()) require_card(card);
  if (on_dry_device()) return;
  const std::string program = dry_program().string();
  if (!fs::exists(program)) {
    throw UsageError(
        "device 'cuda-dry' cannot be used: this build has no dry device; run scripts/setup dry and "
        "build preset dev again");
  }
  if (!card.empty()) setenv(kCardVariable, card.c_str(), /*overwrite=*/1);
  setenv(kNumCardsVariable, kCardsOfNode, /*overwrite=*/0);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  throw UsageError("device 'cuda-dry' cannot be used: " + program + " does not start");
}

void require_dry_for_card(const std::string& device, const std::string& card) {
  if (card.empty() || device == "cuda-dry") return;
  throw UsageError("--card is a choice of device cuda-dry; on " + device + " leave it out");
}

}  // namespace rematch
