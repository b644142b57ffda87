// Stands in for NVIDIA's header, which is not downloaded. Declares only what LibTorch's CUDA
// headers use.
#pragma once

struct cublasContext;
using cublasHandle_t = cublasContext*;
enum cublasStatus_t : int;
