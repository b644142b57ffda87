// Declares a name that LibTorch's CUDA headers use. No downloaded package has CUDA's own header.
#pragma once

struct cusolverDnContext;
using cusolverDnHandle_t = cusolverDnContext*;
