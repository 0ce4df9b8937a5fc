"""See farandole.torch.elastic."""

from farandole.torch.elastic import ElasticSampler, ObjectState, State, TorchState, run  # noqa: F401
