"""Horovod's interface for PyTorch; see farandole.torch."""

from farandole.torch import *  # noqa: F401,F403
from farandole.torch import __all__  # noqa: F401
from horovod.torch import compression, elastic, functions, mpi_ops, optimizer  # noqa: F401
from horovod.torch.mpi_ops import _check_has_gpu  # noqa: F401
