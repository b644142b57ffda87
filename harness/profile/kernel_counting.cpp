#include "harness/profile/kernel_counting.h"

#ifdef REMATCH_CUDA
#include "harness/profile/cupti_functions.h"
#include "harness/profile/cupti_session.h"
#endif

namespace rematch {

std::string kernel_counting_state() {
#ifdef REMATCH_CUDA
  try {
    const CuptiFunctions functions = load_cupti();
    const CuptiSession session(functions);
    return "ok";
  } catch (const CuptiError& error) {
    return error.what();
  }
#else
  return "this build has no CUDA; build preset cuda";
#endif
}

}  // namespace rematch
