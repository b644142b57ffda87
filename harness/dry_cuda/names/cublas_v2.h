// Declares a name that LibTorch's CUDA headers use. No downloaded package has CUDA's own header.
#pragma once

struct cublasContext;
using cublasHandle_t = cublasContext*;
enum cublasStatus_t : int;
