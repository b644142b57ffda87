// Whether ops of this thread are being recorded, for callers that must not run anything unseen.
#pragma once

namespace rematch {

// True between the first and the last scope of a region of the innermost Recording.
bool is_region_open();

}  // namespace rematch
