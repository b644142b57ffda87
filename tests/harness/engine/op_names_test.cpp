// Checks the table of op classes against all ops that this LibTorch registers. The table must
// contain every attention op and every matmul.
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <set>

#include "policies/trace/op_class.h"
#include "tests/support/catch.h"

namespace rematch::testing {
namespace {

bool has_any(const std::string& name, const std::vector<std::string>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const std::string& part) { return name.find(part) != std::string::npos; });
}

TEST_CASE("each attention op that LibTorch registers has the op class of attention") {
  int forward = 0;
  for (const c10::OperatorName& op : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!has_any(op.name, {"attention", "attn"})) continue;
    CAPTURE(op.name);
    const bool is_backward = op.name.find("backward") != std::string::npos;
    CHECK(op_class_of(op.name) ==
          (is_backward ? OpClass::kAttentionBackward : OpClass::kAttentionForward));
    if (!is_backward) ++forward;
  }
  CHECK(forward > 10);
}

// Sparse, quantized and weight-only matmuls are left out, because training with dense weights does
// not use them.
TEST_CASE("each dense matmul that LibTorch registers has the op class of matmuls") {
  const std::set<std::string> elsewhere = {"aten::linalg_matmul", "aten::chain_matmul"};
  int found = 0;
  for (const c10::OperatorName& op : c10::Dispatcher::singleton().getAllOpNames()) {
    const std::string& name = op.name;
    const bool is_product = has_any(name, {"::mm", "::addmm", "bmm", "_mm", "matmul"}) ||
                            name.starts_with("aten::linear");
    if (!name.starts_with("aten::") || !is_product || elsewhere.contains(name)) continue;
    if (has_any(name, {"sparse", "quant", "_weight_int", "fbgemm"})) continue;
    CAPTURE(name);
    CHECK(op_class_of(name) == OpClass::kMatmul);
    ++found;
  }
  CHECK(found > 10);
}

}  // namespace
}  // namespace rematch::testing
