"""Bringing parameters, optimizer state and objects from one rank to all."""

import collections.abc

import torch

from farandole.torch import ops
from farandole.torch._objects import allgather_object, broadcast_object  # noqa: F401 (they belong to this interface)
from farandole.torch._state import broadcast_optimizer_state  # noqa: F401


def broadcast_parameters(params, root_rank):
    """Overwrites tensors with those of rank `root_rank`; all travel at once.

    params: a dict such as model.state_dict(), whose values that are no tensors are replaced by the root's; or any
    iterable of tensors or of pairs (name, tensor), such as model.named_parameters().

    ValueError: `params` is something else.
    """
    if isinstance(params, collections.abc.Mapping):
        items = sorted(params.items(), key=lambda item: str(item[0]))
        others = [name for name, value in items if not isinstance(value, torch.Tensor)]
        items = [(name, value) for name, value in items if isinstance(value, torch.Tensor)]
    elif isinstance(params, collections.abc.Iterable) and not isinstance(params, (torch.Tensor, str, bytes)):
        items = [_named(item, params) for item in params]
        others = []
    else:
        raise ValueError("invalid params of type: %s" % type(params))
    handles = [ops.broadcast_async_(tensor, root_rank, name) for name, tensor in items]
    for handle in handles:
        ops.synchronize(handle)
    if others:
        params.update(broadcast_object({name: params[name] for name in others}, root_rank))


def _named(item, params):
    if isinstance(item, torch.Tensor):
        return None, item
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], torch.Tensor):
        return item
    raise ValueError(
        "invalid params of type: %s with an element of type %s; give tensors or pairs (name, tensor)"
        % (type(params), type(item))
    )
