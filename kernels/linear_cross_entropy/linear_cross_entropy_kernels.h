// Arguments of cross-entropy's kernels over one chunk of the vocabulary, and the kernels by
// instruction set and device. Private to this folder; without LibTorch headers, for nvcc.
#pragma once

#include "kernels/op/element.h"

namespace rematch::kernels {

// Dense logits [rows, width] of classes first, first + 1, ... `maximum`, `sum` and `target_logit`
// hold, a row, the largest logit up to this chunk, the sum of exp(logit - maximum) and the target's
// logit once its chunk was seen: in sums' type, updated.
struct LogitChunk {
  Element element;
  std::int64_t rows, width, first;
  const void* logits;
  const std::int64_t* target;
  void* maximum;
  void* sum;
  void* target_logit;
};

// Turns logits into their gradient, (exp(logit - logsumexp) - [class is target]) * grad_loss /
// rows.
struct LogitChunkBackward {
  Element element;
  std::int64_t rows, width, first;
  void* logits;
  const std::int64_t* target;
  const void* logsumexp;
  const void* grad_loss;  // one number
};

namespace portable {
void add_logits(const LogitChunk& op);
void differentiate_logits(const LogitChunkBackward& op);
}  // namespace portable
namespace avx2 {
void add_logits(const LogitChunk& op);
void differentiate_logits(const LogitChunkBackward& op);
}  // namespace avx2
namespace avx512 {
void add_logits(const LogitChunk& op);
void differentiate_logits(const LogitChunkBackward& op);
}  // namespace avx512
namespace cuda {
int add_logits(const LogitChunk& op, void* stream);
int differentiate_logits(const LogitChunkBackward& op, void* stream);
}  // namespace cuda

}  // namespace rematch::kernels
