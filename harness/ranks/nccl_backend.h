// The NCCL backend. It has a file of its own, so that a build without NCCL can omit c10d's NCCL
// header.
#pragma once

#include <c10/util/intrusive_ptr.h>

namespace c10d {
class Backend;
}

namespace rematch {

struct GroupPlace;

// Makes an NCCL backend on GPU `place.device`, which becomes the thread's current device. Throws
// RanksError if the machine lacks this GPU or the build lacks NCCL.
c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const GroupPlace& place);

}  // namespace rematch
