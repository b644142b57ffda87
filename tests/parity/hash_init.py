"""Initial values of parameters, bitwise equal to the values in C++ (models/layers/parameters.h, Note [Hash
initialisation])."""

import math

import numpy
import torch

FNV_BASIS = 14695981039346656037
FNV_PRIME = 1099511628211
MASK = 0xFFFFFFFFFFFFFFFF

NEAR_ONE = (1.0, 0.125)


def uniform_by_fan_in(fan_in):
    return (0.0, math.sqrt(1.0 / fan_in))


def fnv1a64(text):
    value = FNV_BASIS
    for byte in text.encode():
        value = ((value ^ byte) * FNV_PRIME) & MASK
    return value


def splitmix64(counters):
    """Hashes each element of an array of uint64, with wrap-around."""
    mixed = counters + numpy.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> numpy.uint64(31))


def splitmix64_of(counter):
    return int(splitmix64(numpy.array([counter & MASK], dtype=numpy.uint64))[0])


def counters_from(first, count):
    return numpy.uint64(first & MASK) + numpy.arange(count, dtype=numpy.uint64)


def hash_to_signed_unit(hashes):
    top = (hashes >> numpy.uint64(40)).astype(numpy.int32) - numpy.int32(1 << 23)
    return top.astype(numpy.float32) * numpy.float32(2.0**-23)


def to_tensor(array, dtype=None):
    """Copies the array into memory of torch's allocator. Alignment can select a math kernel, and therefore change
    bits."""
    source = torch.from_numpy(array)
    result = torch.empty(source.shape, dtype=dtype or source.dtype)
    return result.copy_(source)


class Parameters:
    """Creates leaves that require grad, with the same names as in C++."""

    def __init__(self, dtype):
        self.dtype = dtype
        self.by_name = {}

    def add(self, name, sizes, values):
        centre, amplitude = values
        count = math.prod(sizes)
        unit = hash_to_signed_unit(splitmix64(counters_from(fnv1a64(name), count)))
        filled = numpy.float32(centre) + numpy.float32(amplitude) * unit
        tensor = to_tensor(filled.reshape(sizes), self.dtype).requires_grad_(True)
        self.by_name[name] = tensor
        return tensor
