"""broadcast_optimizer_state: every rank's optimizer becomes the root's, whatever either has been through before.

The root describes its state - which values each parameter has, their shapes and types, and the options of the groups -
in one object; the others make themselves look so, and then all tensors travel at once, into place.
"""

import collections

import torch

from farandole import basics
from farandole.torch import _objects, ops

# A tensor of the state, in the description; everything else is described by itself.
_Tensor = collections.namedtuple("_Tensor", "shape dtype with_parameter")


def broadcast_optimizer_state(optimizer, root_rank, model=None):
    """Makes the state and the options of `optimizer` equal to those of rank `root_rank`.

    An optimizer that has not stepped yet gets gradients of zero where there are none, as the original does, but makes
    no step: parameters and step counts stay as they are. model: tells which parameters have sparse gradients.

    ValueError, on all ranks: it is LBFGS, whose state has no fixed shape; or the ranks' optimizers have other groups.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("cannot broadcast torch.optim.LBFGS state")
    _check_same_groups(optimizer)
    if not optimizer.state:
        _add_zero_gradients(optimizer, model)
    groups, states, others = _objects.broadcast_object(_describe(optimizer), root_rank)
    if basics.rank() != root_rank:
        _take_options(optimizer, groups)
        _take_structure(optimizer, states)
        optimizer.state.update(others)
    _broadcast_tensors(optimizer, states, root_rank)


def _check_same_groups(optimizer):
    sizes = _objects.allgather_object([len(group["params"]) for group in optimizer.param_groups])
    for rank, theirs in enumerate(sizes):
        if theirs != sizes[0]:
            raise ValueError(
                "the optimizer of rank 0 has groups of %s parameters, and that of rank %d of %s"
                % (sizes[0], rank, theirs)
            )


def _parameters(optimizer):
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _add_zero_gradients(optimizer, model):
    sparse = {id(parameter) for parameter in _parameters(optimizer) if isinstance(optimizer, torch.optim.SparseAdam)}
    for module in model.modules() if model is not None else ():
        if isinstance(module, torch.nn.Embedding) and module.sparse:
            sparse.add(id(module.weight))
    for parameter in _parameters(optimizer):
        if parameter.requires_grad and parameter.grad is None:
            zero = torch.zeros_like(parameter)
            parameter.grad = zero.to_sparse(1) if id(parameter) in sparse else zero


def _describe(optimizer):
    """(options of each group, state of each parameter with descriptions for tensors, state that belongs to no
    parameter)"""
    groups = [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
    states = []
    for parameter in _parameters(optimizer):
        state = optimizer.state.get(parameter, {})
        states.append({key: _describe_value(value, parameter) for key, value in state.items()})
    others = {key: value for key, value in optimizer.state.items() if not isinstance(key, torch.Tensor)}
    return groups, states, others


def _describe_value(value, parameter):
    if isinstance(value, torch.Tensor) and value.layout == torch.strided:
        return _Tensor(tuple(value.shape), value.dtype, value.device == parameter.device)
    return value


def _take_options(optimizer, groups):
    for group, options in zip(optimizer.param_groups, groups):
        for key, value in options.items():
            mine = group.get(key)
            if isinstance(mine, torch.Tensor) and isinstance(value, torch.Tensor):
                mine.detach().copy_(value)  # captured graphs and schedulers hold on to this very tensor
            else:
                group[key] = value


def _take_structure(optimizer, states):
    for parameter, described in zip(_parameters(optimizer), states):
        if not described:
            optimizer.state.pop(parameter, None)
            continue
        state = optimizer.state[parameter]
        for key in [key for key in state if key not in described]:
            del state[key]
        for key, value in described.items():
            state[key] = _place(value, state.get(key), parameter) if isinstance(value, _Tensor) else value


def _place(description, mine, parameter):
    """A tensor that looks as described: this rank's own if it does, so that who holds on to it sees the new values."""
    if isinstance(mine, torch.Tensor) and (tuple(mine.shape), mine.dtype) == (description.shape, description.dtype):
        return mine
    if not description.with_parameter:
        return torch.empty(description.shape, dtype=description.dtype)
    if description.shape == tuple(parameter.shape):
        return torch.empty_like(parameter, dtype=description.dtype, requires_grad=False)  # in the parameter's layout
    return torch.empty(description.shape, dtype=description.dtype, device=parameter.device)


def _broadcast_tensors(optimizer, states, root_rank):
    handles = []
    for parameter, described in zip(_parameters(optimizer), states):
        for key, value in described.items():
            if isinstance(value, _Tensor):
                name = "%s.%d" % (key, len(handles))
                handles.append(ops.broadcast_async_(optimizer.state[parameter][key], root_rank, name))
    for handle in handles:
        ops.synchronize(handle)
