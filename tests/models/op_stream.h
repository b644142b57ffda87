// Lists the ops that a piece of code runs just below autograd, with the layout of their results.
#pragma once

#include <string>
#include <vector>

#include "harness/engine/interception.h"

namespace rematch {

struct OpSeen {
  std::string name;     // the op's name with its overload, if any: "aten::mm"
  std::string outputs;  // dtype, sizes and strides of every returned tensor
  bool operator==(const OpSeen&) const = default;
};

// Lists the ops that run while it is installed by an OpModeGuard.
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
