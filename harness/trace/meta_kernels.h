// Meta kernels that C++ LibTorch lacks (Python registers them from Python): with them the models,
// their backward and the fused optimizer run on the meta device. Shapes and strides are those of
// the CPU kernels.
#pragma once

namespace rematch {

// Registers them, once per process; calling it again is cheap. Whoever runs a model on meta calls
// it.
void install_meta_kernels();

}  // namespace rematch
