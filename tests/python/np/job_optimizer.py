"""DistributedOptimizer against gradients that are averaged by hand: each rank computes every rank's gradients."""

import copy
import warnings

import pytest
import torch

import horovod.torch as hvd
from horovod.torch.compression import Compressor

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()


def make_model():
    torch.manual_seed(11)
    return torch.nn.Sequential(
        torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
    )


def batch(step, rank):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(4, 6, generator=generator), torch.randn(4, 2, generator=generator)


def loss_of(model, step, rank):
    inputs, targets = batch(step, rank)
    return torch.nn.functional.mse_loss(model(inputs), targets)


def reference_step(model, optimizer, steps, combine=lambda gradients: sum(gradients) / len(gradients)):
    """One step with all ranks' gradients; `steps` are accumulated before."""
    gradients = []
    for rank in range(SIZE):
        model.zero_grad()
        for step in steps:
            loss_of(model, step, rank).backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    for parameter, all_of_them in zip(model.parameters(), zip(*gradients)):
        parameter.grad = combine(all_of_them)
    optimizer.step()


def assert_like(model, reference, **tolerance):
    for mine, expected in zip(model.parameters(), reference.parameters()):
        assert torch.allclose(mine, expected, **(tolerance or {"rtol": 1e-5, "atol": 1e-7})), (
            (mine - expected).abs().max()
        )
    everyone = hvd.allgather_object([parameter.tolist() for parameter in model.parameters()])
    assert all(theirs == everyone[0] for theirs in everyone), "the ranks' parameters differ"


def sgd(model, **options):
    return torch.optim.SGD(model.parameters(), **dict({"lr": 0.1, "momentum": 0.9}, **options))


def distributed(model, optimizer=None, **options):
    return hvd.DistributedOptimizer(optimizer or sgd(model), named_parameters=model.named_parameters(), **options)


def train(model, optimizer, steps=range(3)):
    for step in steps:
        optimizer.zero_grad()
        loss_of(model, step, RANK).backward()
        optimizer.step()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"groups": 2},
        {"groups": 100},
        {"gradient_predivide_factor": float(SIZE)},
        {"gradient_predivide_factor": 2.0, "groups": 1},
        {"compression": hvd.Compression.none},
        {"op": hvd.Average},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "optimizer_class", [sgd, lambda model: torch.optim.Adam(model.parameters(), lr=0.01)], ids=["SGD", "Adam"]
)
def test_steps_are_those_of_averaged_gradients(optimizer_class, options):
    model, reference = make_model(), make_model()
    optimizer, reference_optimizer = distributed(model, optimizer_class(model), **options), optimizer_class(reference)
    train(model, optimizer)
    for step in range(3):
        reference_step(reference, reference_optimizer, [step])
    assert_like(model, reference)


@pytest.mark.parametrize(
    "op, combine",
    [
        (hvd.Sum, sum),
        (hvd.Min, lambda gradients: torch.stack(gradients).amin(0)),
        (hvd.Max, lambda gradients: torch.stack(gradients).amax(0)),
    ],
    ids=["Sum", "Min", "Max"],
)
def test_other_reductions(op, combine):
    model, reference = make_model(), make_model()
    train(model, distributed(model, op=op), [0])
    reference_step(reference, sgd(reference), [0], combine)
    assert_like(model, reference)


def test_fp16_compression():
    model, reference = make_model(), make_model()
    train(model, distributed(model, compression=hvd.Compression.fp16))
    for step, optimizer in zip(range(3), [sgd(reference)] * 3):
        reference_step(reference, optimizer, [step])
    assert_like(model, reference, rtol=1e-2, atol=1e-3)
    assert all(parameter.grad.dtype == torch.float32 for parameter in model.parameters())


def test_without_names():
    model, reference = make_model(), make_model()
    optimizer = hvd.DistributedOptimizer(sgd(model))
    train(model, optimizer, [0])
    reference_step(reference, sgd(reference), [0])
    assert_like(model, reference)


def test_groups_as_lists():
    model, reference = make_model(), make_model()
    groups = [[model[4].weight, model[0].bias], [model[2].weight, model[2].bias]]
    train(model, distributed(model, groups=groups), [0])
    reference_step(reference, sgd(reference), [0])
    assert_like(model, reference)


def test_accumulation_and_its_short_end():
    model, reference = make_model(), make_model()
    optimizer, reference_optimizer = distributed(model, backward_passes_per_step=2), sgd(reference)
    for steps in ([0, 1], [2, 3], [4]):  # the last one is short
        optimizer.zero_grad()
        for step in steps:
            loss_of(model, step, RANK).backward()
        optimizer.step()
        reference_step(reference, reference_optimizer, steps)
    assert_like(model, reference)
    optimizer.set_backward_passes_per_step(1)
    train(model, optimizer, [5])
    reference_step(reference, reference_optimizer, [5])
    assert_like(model, reference)


def test_one_pass_too_many():
    model = make_model()
    optimizer = distributed(model)
    loss_of(model, 0, RANK).backward()
    with pytest.raises(AssertionError, match="more than backward_passes_per_step times"):
        loss_of(model, 1, RANK).backward()
    optimizer.synchronize()


@pytest.mark.parametrize("groups", [None, 2])
def test_parameters_without_gradient_are_zero(groups):
    model, reference = make_model(), make_model()
    model.head, reference.head = torch.nn.Linear(6, 1), torch.nn.Linear(6, 1)
    for name in ("weight", "bias"):
        getattr(reference.head, name).data = getattr(model.head, name).detach().clone()
    optimizer = distributed(model, groups=groups)
    inputs, _ = batch(0, RANK)
    if RANK == 0:
        model.head(inputs).sum().backward()  # the others never touch it, and rank 0 nothing else
    optimizer.step()
    reference.head(batch(0, 0)[0]).sum().backward()
    for parameter in reference.parameters():
        parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad / SIZE
    sgd(reference).step()
    assert_like(model, reference)


@pytest.mark.parametrize("groups", [None, 1])
def test_frozen_parameters_stay_alone_until_they_are_trained(groups):
    model, reference = make_model(), make_model()
    for both in (model, reference):
        both[0].weight.requires_grad = False
    optimizer, reference_optimizer = distributed(model, groups=groups), sgd(reference)
    train(model, optimizer, [0])
    assert model[0].weight.grad is None
    trained = [p for p in reference.parameters() if p.requires_grad]
    gradients = []
    for rank in range(SIZE):
        reference.zero_grad()
        loss_of(reference, 0, rank).backward()
        gradients.append([p.grad.clone() for p in trained])
    for parameter, all_of_them in zip(trained, zip(*gradients)):
        parameter.grad = sum(all_of_them) / SIZE
    reference_optimizer.step()
    assert_like(model, reference)

    for both in (model, reference):
        both[0].weight.requires_grad = True
    for step in (1, 2):
        train(model, optimizer, [step])
        reference_step(reference, reference_optimizer, [step])
        assert_like(model, reference)


def test_two_optimizers_with_equal_names():
    models = [make_model(), make_model()]
    references = copy.deepcopy(models)
    optimizers = [distributed(model) for model in models]
    for optimizer in optimizers:
        optimizer.zero_grad()
    for step, model in enumerate(models):
        loss_of(model, step, RANK).backward()  # both are on their way at once
    for optimizer in reversed(optimizers):
        optimizer.step()
    for step, (model, reference) in enumerate(zip(models, references)):
        reference_step(reference, sgd(reference), [step])
        assert_like(model, reference)


def test_a_dropped_optimizer_sends_nothing():
    model, reference = make_model(), make_model()
    optimizer = distributed(model, op=hvd.Sum)
    optimizer = distributed(model, op=hvd.Sum)
    train(model, optimizer, [0])
    reference_step(reference, sgd(reference), [0], sum)
    assert_like(model, reference)


def test_a_group_that_is_added_later():
    model, reference = make_model(), make_model()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model[:3].parameters(), lr=0.1, momentum=0.9))
    optimizer.add_param_group({"params": model[3:].parameters()})
    reference_optimizer = sgd(reference)
    for step in range(2):
        train(model, optimizer, [step])
        reference_step(reference, reference_optimizer, [step])
    assert_like(model, reference)


def test_a_schedule_made_before_or_after():
    for before in (True, False):
        model, reference = make_model(), make_model()
        plain, reference_optimizer = sgd(model), sgd(reference)
        optimizer = None if before else distributed(model, plain)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            schedule = torch.optim.lr_scheduler.StepLR(plain if before else optimizer, 1, 0.5)
            reference_schedule = torch.optim.lr_scheduler.StepLR(reference_optimizer, 1, 0.5)
            optimizer = optimizer or distributed(model, plain)
            for step in range(2):
                train(model, optimizer, [step])
                schedule.step()
                reference_step(reference, reference_optimizer, [step])
                reference_schedule.step()
        assert_like(model, reference)


def test_state_of_the_given_optimizer_is_kept():
    model, reference = make_model(), make_model()
    plain, reference_optimizer = sgd(model), sgd(reference)
    for both, optimizer in ((model, plain), (reference, reference_optimizer)):
        loss_of(both, 7, 0).backward()
        optimizer.step()
        optimizer.zero_grad()
    optimizer = distributed(model, plain)
    assert isinstance(optimizer, torch.optim.SGD) and type(optimizer).__name__ == "SGD"
    train(model, optimizer, [0])
    reference_step(reference, reference_optimizer, [0])
    assert_like(model, reference)


def test_gradients_can_be_clipped_between_synchronize_and_step():
    model, reference = make_model(), make_model()
    optimizer, reference_optimizer = distributed(model), sgd(reference)
    loss_of(model, 0, RANK).backward()
    optimizer.synchronize()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    with optimizer.skip_synchronize():
        optimizer.step()

    class Clipped:
        @staticmethod
        def step():
            torch.nn.utils.clip_grad_norm_(reference.parameters(), 0.01)
            reference_optimizer.step()

    reference_step(reference, Clipped, [0])
    assert_like(model, reference)


def test_step_after_synchronize_warns():
    model = make_model()
    optimizer = distributed(model)
    loss_of(model, 0, RANK).backward()
    optimizer.synchronize()
    with pytest.warns(UserWarning, match="called without optimizer.skip_synchronize"):
        optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(model, optimizer, [1])


def test_a_closure_is_synchronized():
    model, reference = make_model(), make_model()
    optimizer, reference_optimizer = distributed(model), sgd(reference)
    for step in range(2):

        def closure():
            optimizer.zero_grad()
            loss = loss_of(model, step, RANK)
            loss.backward()
            return loss

        assert optimizer.step(closure).item() > 0
        reference_step(reference, reference_optimizer, [step])
    assert_like(model, reference)


def test_zero_grad_while_gradients_travel():
    model = make_model()
    optimizer = distributed(model)
    loss_of(model, 0, RANK).backward()
    with pytest.raises(AssertionError, match="prohibited as it can cause a race condition"):
        optimizer.zero_grad()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_load_state_dict_drops_what_travels():
    model, reference = make_model(), make_model()
    optimizer = distributed(model)
    state = optimizer.state_dict()
    loss_of(model, 5, RANK).backward()
    optimizer.load_state_dict(state)
    train(model, optimizer, [0])
    reference_step(reference, sgd(reference), [0])
    assert_like(model, reference)


@pytest.mark.parametrize("options", [{}, {"sparse_as_dense": True}, {"groups": 1}], ids=str)
def test_sparse_gradients(options):
    def make():
        torch.manual_seed(5)
        return torch.nn.ModuleDict({"e": torch.nn.Embedding(8, 3, sparse=True), "l": torch.nn.Linear(3, 1)})

    def loss(model, step, rank):
        return model["l"](model["e"](torch.tensor([rank, rank + 1, 7 - step]))).sum()

    model, reference = make(), make()
    optimizer = distributed(model, torch.optim.SGD(model.parameters(), lr=0.1), **options)
    reference_optimizer = torch.optim.SGD(reference.parameters(), lr=0.1)
    for step in range(2):
        optimizer.zero_grad()
        loss(model, step, RANK).backward()
        optimizer.step()
        assert model["e"].weight.grad.is_sparse
        reference.zero_grad()
        for rank in range(SIZE):
            (loss(reference, step, rank) / SIZE).backward()
        reference_optimizer.step()
    assert_like(model, reference)
    if not options:  # a parameter that has no gradient this time takes part without entries
        optimizer.zero_grad(set_to_none=True)
        if RANK == 0:
            loss(model, 0, 0).backward()
        optimizer.step()
        reference.zero_grad()
        (loss(reference, 0, 0) / SIZE).backward()
        reference_optimizer.step()
        assert_like(model, reference)


class SometimesDouble(Compressor):
    """Matrices travel as float64 when told so."""

    now = False

    @staticmethod
    def compress(tensor):
        return tensor.double() if SometimesDouble.now and tensor.dim() == 2 else tensor, tensor.dtype

    @staticmethod
    def decompress(tensor, ctx):
        return tensor.to(ctx)


def test_a_failed_step_leaves_the_optimizer_usable():
    model, reference = make_model(), make_model()
    optimizer = distributed(model, compression=SometimesDouble)
    SometimesDouble.now = RANK == 0
    loss_of(model, 0, RANK).backward()
    with pytest.raises(hvd.HorovodInternalError, match="float64"):
        optimizer.step()
    SometimesDouble.now = True
    train(model, optimizer, [0])
    reference_step(reference, sgd(reference), [0])
    assert_like(model, reference)


def test_arguments():
    model = make_model()
    for options, text in (
        (dict(gradient_predivide_factor=2.0, op=hvd.Sum), "gradient_predivide_factor"),
        (dict(backward_passes_per_step=0), "backward_passes_per_step > 0"),
        (dict(groups=0), "groups"),
        (dict(groups=[[model[0].weight], [model[0].weight]]), "once"),
    ):
        with pytest.raises(ValueError, match=text):
            distributed(model, **options)
    with pytest.raises(ValueError, match="already"):
        distributed(model, distributed(model))
    with pytest.raises(NotImplementedError):
        distributed(model, op=hvd.Adasum)
    with pytest.warns(DeprecationWarning):
        distributed(model, num_groups=2)
