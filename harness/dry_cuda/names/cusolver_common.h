// Stands in for NVIDIA's header, which is not downloaded. Declares only what LibTorch's CUDA
// headers use.
#pragma once

enum cusolverStatus_t : int;
