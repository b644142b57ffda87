// Stands in for NVIDIA's header, which is not downloaded. Declares only what LibTorch's CUDA
// headers use.
#pragma once

struct cusparseContext;
using cusparseHandle_t = cusparseContext*;
enum cusparseStatus_t : int;
