// A name that LibTorch's CUDA headers spell; CUDA's own header is in no package that is fetched.
#pragma once

struct cusolverDnContext;
using cusolverDnHandle_t = cusolverDnContext*;
