// Lists the ops that a piece of code runs just below autograd, with the layout of their results.
#pragma once

#include <string>
#include <vector>

#include "harness/engine/interception.h"

namespace rematch {

struct OpSeen {
  std::string name;     // "aten::mm", including the overload if there is one
  std::string outputs;  // dtype, sizes and strides of every tensor returned
  bool operator==(const OpSeen&) const = default;
};

// Lists ops while an OpModeGuard for it lives.
class OpStream final : public OpMode {
 public:
  void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack,
           std::size_t depth) override;

  const std::vector<OpSeen>& ops() const { return ops_; }
  std::vector<std::string> names() const;

 private:
  std::vector<OpSeen> ops_;
};

}  // namespace rematch
