#include "harness/ranks/nccl_backend.h"
#include "harness/ranks/place.h"

namespace rematch {

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const GroupPlace&) {
  throw RanksError("this build has no NCCL, which ranks on GPUs need: build preset cuda");
}

}  // namespace rematch
