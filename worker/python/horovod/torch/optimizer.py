"""See farandole.torch.optimizer."""

from farandole.torch.optimizer import DistributedOptimizer  # noqa: F401
