"""Farandole for Python: pure Python over the C interface in worker/capi/farandole.h, by ctypes.

Where to start reading:

    farandole.basics     init, shutdown, rank, size
    farandole.torch      the operations, the optimizer and the helpers for PyTorch
    farandole.errors     what can go wrong, and which exception says it

Importing this package loads neither a framework nor the native library; `init` does the latter.
"""

__version__ = "0.1.0"
