"""See farandole.torch.compression."""

from farandole.torch.compression import Compression, Compressor, FP16Compressor, NoneCompressor  # noqa: F401
