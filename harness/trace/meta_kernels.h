// Meta kernels that C++ LibTorch lacks, because PyTorch registers them from Python. With these
// kernels the models, their backward and the fused optimizer run on the meta device. Shapes and
// strides equal those of the CPU kernels.
#pragma once

namespace rematch {

// Registers the kernels once per process. Repeated calls are cheap. Call this before running a
// model on meta.
void install_meta_kernels();

}  // namespace rematch
