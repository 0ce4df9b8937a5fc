"""See farandole.torch."""

from farandole.torch import SyncBatchNorm  # noqa: F401
