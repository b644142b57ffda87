#include "policies/trace/spans.h"

#include <algorithm>

namespace rematch {

std::vector<TypedSpan> forward_spans(const SpannedTrace& spanned) {
  std::vector<TypedSpan> spans;
  std::size_t first = 0;
  for (const TraceSpan& span : spanned.spans) {
    const auto length = spanned.types[static_cast<std::size_t>(span.type)].ops.size();
    spans.push_back({span.type, first, length});
    first += length;
  }
  return spans;
}

std::vector<TypedSpan> backward_spans(const SpannedTrace& spanned) {
  std::vector<TypedSpan> spans;
  std::size_t first = 0;
  for (const BackwardRun& run : spanned.backward) {
    const auto& events = spanned.backward_types[static_cast<std::size_t>(run.type)];
    const auto length = static_cast<std::size_t>(std::count_if(
        events.begin(), events.end(),
        [](const BackwardEvent& event) { return event.kind == BackwardEvent::Kind::kOp; }));
    spans.push_back({run.type, first, length});
    first += length;
  }
  return spans;
}

}  // namespace rematch
