// Declares what LibTorch's CUDA headers use of this NVIDIA header, which is not downloaded.
#pragma once

struct cusparseContext;
using cusparseHandle_t = cusparseContext*;
enum cusparseStatus_t : int;
