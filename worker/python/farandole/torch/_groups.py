"""Which parameters of an optimizer are sent together."""

import torch

from farandole.torch import _objects
from farandole.util import split_list


class Group(object):
    """Parameters, in an order that is the same on all ranks, and which of them are ready to be sent."""

    def __init__(self, members):
        self.members = members
        self._ready = set()

    def add(self, parameter):
        """`parameter` is ready; whether all are now."""
        self._ready.add(parameter)
        return len(self._ready) == len(self.members)

    def ready(self):
        """Those that are ready, in order."""
        return [parameter for parameter in self.members if parameter in self._ready]

    def clear(self):
        """None is ready."""
        self._ready.clear()


def assign(groups, names, collective, process_set):
    """(list of Group, {parameter: its Group}); parameters that are in none are sent alone.

    groups: None; a number, into so many parts the parameters are cut; or a list of lists of parameters.
    names: {parameter: name}. collective: the ranks of `process_set` call this together, and its first one has the
    order of parameters.

    ValueError: neither; something that is no parameter of the optimizer; one that is in two groups; ranks name other
    ones.
    """
    if groups is None:
        return [], {}
    if isinstance(groups, (list, tuple)):
        _check_lists(groups, names)
    elif isinstance(groups, bool) or not isinstance(groups, int) or groups <= 0:
        raise ValueError("groups should be a non-negative integer or a list of list of torch.Tensor.")
    ordered = _ordered(names, process_set) if collective else list(names)
    if isinstance(groups, int):
        parts = split_list(ordered, min(groups, len(ordered)))
    else:
        place = {parameter: index for index, parameter in enumerate(ordered)}
        parts = [sorted(group, key=place.__getitem__) for group in groups]
    made = [Group(part) for part in parts if part]
    return made, {parameter: group for group in made for parameter in group.members}


def _check_lists(groups, names):
    seen = set()
    for group in groups:
        for parameter in group:
            if not isinstance(parameter, torch.Tensor):
                raise ValueError("groups must consist of torch.Tensor.")
            if parameter in seen:
                raise ValueError("A parameter can only appear once in groups.")
            if parameter not in names:
                raise ValueError("groups has a tensor that is not a parameter of the optimizer.")
            seen.add(parameter)


def _ordered(names, process_set):
    """This rank's parameters in the order of the first rank of the set."""
    first = _objects.broadcast_object(list(names.values()), process_set.ranks[0], process_set=process_set)
    mine = {name: parameter for parameter, name in names.items()}
    if set(first) != set(mine):
        differing = sorted(set(first) ^ set(mine))
        raise ValueError("the optimizer's parameters have other names than on rank %d: %s" % (process_set.ranks[0], ", ".join(differing[:5])))
    return [mine[name] for name in first]
