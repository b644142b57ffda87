#include "reports/record/memory.h"

#include "tests/support/catch.h"

namespace rematch {
namespace {

TEST_CASE("the peak of tensors excludes the memory of libraries if that memory is known") {
  MemoryRecord memory;
  CHECK_FALSE(peak_of_tensors(memory).has_value());
  memory.peak_allocated = Bytes{1024};
  CHECK(peak_of_tensors(memory) == Bytes{1024});
  memory.peak_requested = Bytes{1000};
  CHECK(peak_of_tensors(memory) == Bytes{1024});
  memory.workspace = Bytes{300};
  CHECK(peak_of_tensors(memory) == Bytes{700});
}

}  // namespace
}  // namespace rematch
