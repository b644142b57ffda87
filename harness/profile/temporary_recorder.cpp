#include "harness/profile/temporary_recorder.h"

#include <algorithm>

#include "harness/engine/record/op_facts.h"
#include "harness/profile/step_ops.h"

namespace rematch {

void TemporaryRecorder::about_to_run(const c10::OperatorHandle&, Phase, const torch::jit::Stack&) {
  if (list_ == nullptr) return;
  memory_.reset_peak();
  before_ = memory_.sample().total;
}

void TemporaryRecorder::executed(const c10::OperatorHandle& op, Phase, const torch::jit::Stack&) {
  if (list_ == nullptr) return;
  const Bytes standing = std::max(before_, memory_.sample().total);
  list_->push_back({&facts_of(op).name, std::max(Bytes{}, memory_.peak() - standing)});
}

std::vector<Bytes> bytes_of(const std::vector<OpTemporary>& weighed,
                            const std::vector<const std::string*>& traced, const std::string& phase,
                            const std::string& device) {
  std::vector<const std::string*> ran;
  std::vector<Bytes> bytes;
  for (const OpTemporary& op : weighed) {
    ran.push_back(op.name);
    bytes.push_back(op.bytes);
  }
  require_same_ops(ran, traced, phase, device);
  return bytes;
}

}  // namespace rematch
