// A name that LibTorch's CUDA headers spell; CUDA's own header is in no package that is fetched.
#pragma once

struct cusparseContext;
using cusparseHandle_t = cusparseContext*;
enum cusparseStatus_t : int;
