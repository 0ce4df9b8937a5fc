"""The names under which gradients travel: the same on all ranks, and never twice at a time in one process."""

import collections

from farandole import basics

_generation = 0  # of basics, for which the rest is
_used = set()
_scopes = 0


def by_place(param_groups):
    """{parameter: name made from its place} for all parameters of an optimizer."""
    return {
        parameter: "noname.%d.%d" % (group, index)
        for group, options in enumerate(param_groups)
        for index, parameter in enumerate(options["params"])
    }


def parameter_names(param_groups, named_parameters):
    """{parameter: name} for all parameters of an optimizer; without `named_parameters` made from their places.

    ValueError: `named_parameters` are no pairs, a name comes twice, or a parameter has none.
    """
    places = by_place(param_groups)
    if named_parameters is None:
        return places
    named = list(named_parameters)
    if not all(isinstance(item, tuple) and len(item) == 2 for item in named):
        raise ValueError(
            "named_parameters should be a sequence of tuples (name, parameter), usually produced by "
            "model.named_parameters()."
        )
    counts = collections.Counter(name for name, _ in named)
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:
        raise ValueError(
            "Parameter names in named_parameters must be unique. Found duplicates: %s" % ", ".join(twice)
        )
    result = {parameter: name for name, parameter in named}
    unnamed = [place for parameter, place in places.items() if parameter not in result]
    if unnamed:
        raise ValueError(
            "named_parameters was specified, but one or more model parameters were not named. Their group and "
            "index in the optimizer: %s" % ", ".join(place[len("noname.") :] for place in unnamed)
        )
    return {parameter: result[parameter] for parameter in places}


def scope(names):
    """What to put before `names` so that none of them is one of an earlier optimizer's: nothing for the first, then a
    number.

    It counts optimizers since init(), so ranks that make them in one order agree.
    """
    global _generation, _scopes
    if _generation != basics.generation():
        _generation = basics.generation()
        _used.clear()
        _scopes = 0
    names = set(names)
    if not names & _used:
        _used.update(names)
        return ""
    _scopes += 1
    return "optimizer%d." % (_scopes + 1)
