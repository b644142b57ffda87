// Stands in for NVIDIA's header, which is not downloaded. Declares only what LibTorch's CUDA
// headers use.
#pragma once

struct cusolverDnContext;
using cusolverDnHandle_t = cusolverDnContext*;
