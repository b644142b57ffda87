// Declares what LibTorch's CUDA headers use of this NVIDIA header, which is not downloaded.
#pragma once

struct cublasLtContext;
using cublasLtHandle_t = cublasLtContext*;
