// A name that LibTorch's CUDA headers spell; CUDA's own header is in no package that is fetched.
#pragma once

struct cublasContext;
using cublasHandle_t = cublasContext*;
enum cublasStatus_t : int;
