// Reads the activity records in one of CUPTI's buffers. Pure but for CUPTI's own function that
// walks the buffer.
#pragma once

#include "harness/profile/activity.h"
#include "harness/profile/cupti_functions.h"

namespace rematch {

// Which of the external ids are ours: others may be pushed by libraries.
inline constexpr CUpti_ExternalCorrelationKind kOpCallId = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

// Appends the kernels, transfers and links among the first `valid_bytes` of `buffer`; other records
// (the launching calls themselves) say nothing that these do not. Throws CuptiError if the buffer
// cannot be walked to its end.
void read_records(const CuptiFunctions& functions, std::uint8_t* buffer, std::size_t valid_bytes,
                  Activity& activity);

}  // namespace rematch
