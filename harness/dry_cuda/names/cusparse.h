// Declares a name that LibTorch's CUDA headers use. No downloaded package has CUDA's own header.
#pragma once

struct cusparseContext;
using cusparseHandle_t = cusparseContext*;
enum cusparseStatus_t : int;
