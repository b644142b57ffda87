// Declares what LibTorch's CUDA headers use of this NVIDIA header, which is not downloaded.
#pragma once

struct cusolverDnContext;
using cusolverDnHandle_t = cusolverDnContext*;
