// Tells whether the ops of this thread are being recorded. If they are, a caller must not run ops
// that bypass the recorder.
#pragma once

namespace rematch {

// True while a region is open, from its first to its last scope. Considers only the innermost
// Recording.
bool is_region_open();

}  // namespace rematch
