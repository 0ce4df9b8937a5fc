"""How gradients travel: as they are, or rounded to half precision."""

import torch


class Compressor(object):
    """What a compression does; derive from it for another one."""

    @staticmethod
    def compress(tensor):
        """Returns (what is sent, what decompress needs to know)."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor, ctx):
        """The tensor again, from what arrived."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Tensors travel as they are."""

    @staticmethod
    def compress(tensor):
        """Returns (tensor, None)."""
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        """Returns `tensor`."""
        return tensor


class FP16Compressor(Compressor):
    """Tensors of floating point travel as float16, others as they are."""

    @staticmethod
    def compress(tensor):
        """Returns (tensor as float16, its own type)."""
        compressed = tensor.to(torch.float16) if tensor.dtype.is_floating_point else tensor
        return compressed, tensor.dtype

    @staticmethod
    def decompress(tensor, ctx):
        """The tensor in its own type, `ctx`."""
        return tensor.to(ctx) if ctx.is_floating_point else tensor


class Compression(object):
    """The compressions to choose from."""

    none = NoneCompressor
    fp16 = FP16Compressor
