// Tells whether the ops of this thread are being recorded. If they are, a caller must not run ops
// that bypass the recorder.
#pragma once

namespace rematch {

// True between the first and the last scope of a region of the innermost Recording.
bool is_region_open();

}  // namespace rematch
