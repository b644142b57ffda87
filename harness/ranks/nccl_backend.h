// The NCCL backend. It is separate from the other backends (backends.h), so that a build without
// NCCL includes no header of c10d for it.
#pragma once

#include <c10/util/intrusive_ptr.h>

namespace c10d {
class Backend;
}

namespace rematch {

struct GroupPlace;

// Makes an NCCL backend on the place's GPU, which becomes the thread's current device. Throws
// RanksError if there is no such GPU or this build has no NCCL.
c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const GroupPlace& place);

}  // namespace rematch
