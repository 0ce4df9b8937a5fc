"""broadcast_optimizer_state: every optimizer that torch has, fresh or resumed on the root, plain or wrapped."""

import copy
import itertools

import pytest
import torch

import horovod.torch as hvd

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()

OPTIMIZERS = sorted(
    (
        subclass
        for subclass in torch.optim.Optimizer.__subclasses__()
        if subclass.__module__.startswith("torch.optim")
        and subclass not in (torch.optim.LBFGS, torch.optim.SparseAdam)
    ),
    key=lambda subclass: subclass.__name__,
)
OPTIONS = {
    "SGD": [{"lr": 0.1}, {"lr": 0.1, "momentum": 0.9, "nesterov": True}],
    "RMSprop": [{"lr": 0.1}, {"lr": 0.1, "momentum": 0.9, "centered": True}],
    "Adam": [{"lr": 0.1}, {"lr": 0.1, "amsgrad": True}],
}


def make(optimizer_class, options, wrapped):
    """A model and its optimizer, with options that differ between ranks."""
    model = torch.nn.Sequential(*(torch.nn.Linear(*size, bias=False) for size in ((3, 4), (4, 2))))
    groups = [
        {"params": model[0].parameters()},
        {"params": model[1].parameters(), "lr": options.get("lr", 0.1) / (RANK + 2)},
    ]
    optimizer = optimizer_class(groups, **dict(options, lr=options.get("lr", 0.1) / (RANK + 1)))
    if wrapped:
        optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    return model, optimizer


def step(model, optimizer, factor):
    optimizer.zero_grad()
    (model(torch.ones(5, 3)) * factor).pow(2).sum().backward()
    if hasattr(optimizer, "skip_synchronize"):
        optimizer.synchronize()
        with optimizer.skip_synchronize():
            optimizer.step()
    else:
        optimizer.step()


def comparable(optimizer):
    """The optimizer's state and options as plain values."""

    def plain(value):
        return (str(value.dtype), value.tolist()) if isinstance(value, torch.Tensor) else value

    content = optimizer.state_dict()
    return {
        "state": {
            number: {key: plain(value) for key, value in sorted(state.items())}
            for number, state in content["state"].items()
        },
        "groups": [{key: plain(value) for key, value in sorted(group.items())} for group in content["param_groups"]],
    }


@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "wrapped"])
@pytest.mark.parametrize("who_stepped", [(), (0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("optimizer_class", OPTIMIZERS, ids=lambda optimizer_class: optimizer_class.__name__)
def test_state_follows_the_root(optimizer_class, who_stepped, wrapped):
    for options, root in itertools.product(OPTIONS.get(optimizer_class.__name__, [{}]), (0, 1)):
        torch.manual_seed(RANK)
        model, optimizer = make(optimizer_class, options, wrapped=False)
        if RANK in who_stepped:
            for _ in range(2):
                step(model, optimizer, RANK + 1.0)
        if wrapped:
            optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
        parameters = [parameter.detach().clone() for parameter in model.parameters()]
        expected = hvd.broadcast_object(comparable(optimizer), root)

        hvd.broadcast_optimizer_state(optimizer, root_rank=root)
        assert comparable(optimizer) == expected
        assert all(map(torch.equal, model.parameters(), parameters))

        hvd.broadcast_parameters(model.state_dict(), root_rank=root)
        step(model, optimizer, 1.0)
        everyone = hvd.allgather_object((comparable(optimizer), [p.tolist() for p in model.parameters()]))
        assert all(theirs == everyone[0] for theirs in everyone)


def test_a_checkpoint_on_rank_0_resumes_everywhere():
    torch.manual_seed(3)
    model, optimizer = make(torch.optim.Adam, {}, wrapped=True)
    hvd.broadcast_optimizer_state(optimizer, 0)
    for _ in range(3):
        step(model, optimizer, 1.0)
    checkpoint = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    step(model, optimizer, 1.0)
    expected = (comparable(optimizer), [parameter.tolist() for parameter in model.parameters()])

    torch.manual_seed(RANK)
    model, optimizer = make(torch.optim.Adam, {}, wrapped=True)
    if RANK == 0:
        model.load_state_dict(checkpoint[0])
        optimizer.load_state_dict(checkpoint[1])
    hvd.broadcast_parameters(model.state_dict(), 0)
    hvd.broadcast_optimizer_state(optimizer, 0)
    step(model, optimizer, 1.0)
    assert (comparable(optimizer), [parameter.tolist() for parameter in model.parameters()]) == expected


def test_a_fresh_optimizer_gets_gradients_of_zero_where_they_are_missing():
    frozen = torch.ones(2, requires_grad=False)
    trained = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([frozen, trained], lr=0.1, momentum=0.9)
    hvd.broadcast_optimizer_state(optimizer, 0)
    assert frozen.grad is None and trained.grad.tolist() == [0.0, 0.0]


def test_sparse_adam():
    model = torch.nn.Embedding(5, 2, sparse=True)
    optimizer = torch.optim.SparseAdam(model.parameters(), lr=0.1)
    if RANK == 0:
        model(torch.tensor([1, 2])).sum().backward()
        optimizer.step()
    expected = hvd.broadcast_object(comparable(optimizer), 0)
    hvd.broadcast_optimizer_state(optimizer, 0, model=model)
    assert comparable(optimizer) == expected
    assert model.weight.grad.is_sparse


def test_tensors_of_the_state_stay_the_same_objects():
    model, optimizer = make(torch.optim.Adam, {}, wrapped=False)
    step(model, optimizer, RANK + 1.0)
    before = optimizer.state[model[0].weight]["exp_avg"]
    hvd.broadcast_optimizer_state(optimizer, 0)
    assert optimizer.state[model[0].weight]["exp_avg"] is before


def test_what_cannot_be_broadcast():
    with pytest.raises(ValueError, match="cannot broadcast torch.optim.LBFGS state"):
        hvd.broadcast_optimizer_state(torch.optim.LBFGS([torch.ones(1, requires_grad=True)]), 0)
    parameters = [torch.ones(1, requires_grad=True) for _ in range(RANK + 1)]
    with pytest.raises(ValueError, match="rank 0 has groups of .1. parameters, and that of rank 1 of .2."):
        hvd.broadcast_optimizer_state(torch.optim.SGD(parameters, lr=0.1), 0)
