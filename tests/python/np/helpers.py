"""What the tests in this folder share. Each rank can make every rank's tensors, so each has the whole truth."""

import torch

import horovod.torch as hvd

REDUCED = [
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
]
MOVED = REDUCED + [torch.bool, torch.complex64, torch.complex128]


def tensor_of(rank, shape, dtype, seed=0):
    """What `rank` contributes: small whole numbers, so that float16 is exact."""
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    low = 0 if dtype in (torch.uint8, torch.bool) else -3
    values = torch.randint(low, 4, shape, generator=generator)
    return values.to(dtype)


def tensors(shape, dtype, seed=0):
    """All ranks' contributions."""
    return [tensor_of(rank, shape, dtype, seed) for rank in range(hvd.size())]


def same(left, right):
    """Type, shape and every value are equal."""
    return left.dtype == right.dtype and left.shape == right.shape and bool((left == right).all())
