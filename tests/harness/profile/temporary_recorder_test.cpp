// Tests the measurement of memory that ops use only while they run. The CPU's counting allocator
// counts such temporaries, as a GPU's allocator does.
#include "harness/profile/op_call_recorder.h"

#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sin.h>

#include <stdexcept>

#include "kernels/attention/attention.h"
#include "tests/kernels/composed_attention.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

// Two heads with 8 tokens each, of width 16.
at::Tensor heads() { return at::ones({1, 2, 8, 16}); }

TEST_CASE("an op's temporaries are its peak bytes minus the bytes in use when it ends") {
  install_counting_allocators();
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::ones({8, 16});
  const at::Tensor q = heads();
  TemporaryRecorder recorder(at::kCPU);
  std::vector<OpFigure<Bytes>> ops;
  {
    const OpObserverGuard observe(&recorder);
    at::sin(x);  // not recorded, because no list is set
    recorder.set_list(&ops);
    const at::Tensor y = at::sin(x);  // has no temporaries, because it allocates only its output
    const testing::WithBackend math(AttentionBackend::kMath);
    attention(q, q, q, /*causal=*/false);
    recorder.set_list(nullptr);
    at::sin(y);
  }
  REQUIRE(ops.size() == 2);
  CHECK(*ops[0].name == "aten::sin");
  CHECK(ops[0].figure == Bytes{0});
  // While composed attention runs, it holds at least one tensor of 2 x 8 x 8 scores in float32.
  CHECK(*ops[1].name == "rematch::attention");
  CHECK(ops[1].figure >= Bytes{2 * 8 * 8 * 4});
}

TEST_CASE("temporaries are refused if the ops that ran differ from the trace's ops") {
  const std::string mm = "aten::mm";
  const std::string sin = "aten::sin";
  const std::vector<OpFigure<Bytes>> weighed = {{&mm, Bytes{5}}, {&sin, Bytes{0}}};
  CHECK((figures_of(weighed, {&mm, &sin}, "forward", "the GPU") ==
         std::vector<Bytes>{Bytes{5}, Bytes{0}}));
  CHECK_THROWS_WITH(figures_of(weighed, {&mm, &mm}, "forward", "the GPU"),
                    Catch::Contains("op 1 of forward is aten::sin on the GPU and aten::mm"));
  CHECK_THROWS_WITH(figures_of(weighed, {&mm}, "backward", "the GPU"),
                    Catch::Contains("op 1 of backward is aten::sin on the GPU and missing"));
}

}  // namespace
}  // namespace rematch
