// Declares what LibTorch's CUDA headers use of this NVIDIA header, which is not downloaded.
#pragma once

struct cublasContext;
using cublasHandle_t = cublasContext*;
enum cublasStatus_t : int;
