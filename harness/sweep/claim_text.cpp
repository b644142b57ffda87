#include "harness/sweep/claim_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "policies/base/field_value.h"
#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/base/text.h"

namespace rematch {

template <RecordOf<ClaimHolder> Holder, class Visit>
void visit_fields(Holder& holder, Visit visit) {
  visit("plan", holder.plan);
  visit("host", holder.host);
  visit("machine", holder.machine);
  visit("pid", holder.pid);
  visit("born_ticks", holder.born);
  visit("task", holder.task);
  visit("task_start", holder.task_start);
}

namespace {

constexpr std::string_view kBeat = "beat";
constexpr std::array<std::pair<ClaimState, std::string_view>, 4> kEnds = {
    {{ClaimState::kDone, "done"},
     {ClaimState::kFree, "released"},
     {ClaimState::kFailed, "failed"},
     {ClaimState::kSkipped, "skipped"}}};

ClaimHolder holder_from(std::string_view line, const std::string& name) {
  const Json json = parse_json(line, name);
  try {
    require_schema(json, kClaimSchema.kind);
    ClaimHolder holder;
    read_fields(JsonField(json), holder);
    return holder;
  } catch (const FormatError& error) {
    throw FormatError(name + ": " + error.what());
  }
}

// Reads any line but the first. Ignores unknown lines, because a full disk may have left part of
// another line at the beginning of this line.
void read_line(std::string_view line, ClaimText& claim) {
  if (claim.end) return;
  if (line == kBeat) ++claim.num_beats;
  for (const auto& [end, word] : kEnds) {
    if (line != word && !line.starts_with(std::string(word) + " ")) continue;
    claim.end = end;
    claim.reason = line.substr(std::min(line.size(), word.size() + 1));
  }
}

}  // namespace

std::string holder_line(const ClaimHolder& holder) {
  return line_of(document_of(kClaimSchema, holder)) + "\n";
}

std::string beat_line() { return std::string(kBeat) + "\n"; }

std::string end_line(ClaimState end, const std::string& reason) {
  constexpr std::size_t kLongestReason = 1000;
  for (const auto& [known, word] : kEnds) {
    if (known != end) continue;
    std::string line(word);
    if (!reason.empty()) line.append(" ").append(on_one_line(reason, kLongestReason));
    return line.append("\n");
  }
  return "";
}

ClaimText parse_claim(std::string_view text, const std::string& name) {
  ClaimText claim;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    if (end == std::string_view::npos)
      break;  // the line is incomplete: it is being written, or the disk was full
    const std::string_view line = text.substr(start, end - start);
    if (!claim.holder) {
      claim.holder = holder_from(line, name);
    } else {
      read_line(line, claim);
    }
    start = end + 1;
  }
  return claim;
}

std::string claim_name(const std::string& comparison, int generation) {
  return comparison + ".g" + std::to_string(generation);
}

std::optional<ClaimName> parse_claim_name(std::string_view name) {
  const std::size_t dot = name.rfind(".g");
  if (dot == std::string_view::npos || dot == 0) return std::nullopt;
  const auto generation = parse_number<int>(name.substr(dot + 2));
  if (!generation || *generation < 1) return std::nullopt;
  return ClaimName{std::string(name.substr(0, dot)), *generation};
}

}  // namespace rematch
