// Tells whether the ops of this thread are being recorded. A caller must not run ops unseen then.
#pragma once

namespace rematch {

// True between the first and the last scope of a region of the innermost Recording.
bool is_region_open();

}  // namespace rematch
