// The ops of a pass by the spans that a trace is cut into (spans.h). Spans of one type
// do the same.
#pragma once

#include <cstddef>
#include <vector>

#include "policies/trace/spans.h"

namespace rematch {

// Ops [first, first + length) of forward, or of the ops of backward.
struct TypedSpan {
  int type = 0;
  std::size_t first = 0;
  std::size_t length = 0;
};

std::vector<TypedSpan> forward_spans(const SpannedTrace& spanned);
std::vector<TypedSpan> backward_spans(const SpannedTrace& spanned);

}  // namespace rematch
