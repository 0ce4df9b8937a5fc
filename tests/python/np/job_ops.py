"""Every operation on every type against a local oracle."""

import pytest
import torch
from helpers import MOVED, REDUCED, same, tensor_of, tensors

import horovod.torch as hvd

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
SHAPES = [(), (0,), (1,), (17,), (3, 0, 2), (4, 5, 6), (10007,)]


def reduced(values, op):
    """The oracle: in 64 bits, then in the type again."""
    dtype = values[0].dtype
    wide = torch.stack([value.to(torch.float64 if dtype.is_floating_point else torch.int64) for value in values])
    if op == hvd.Sum:
        result = wide.sum(0)
    elif op == hvd.Average:
        result = wide.sum(0).double() / len(values)
        result = result if dtype.is_floating_point else result.trunc()
    elif op == hvd.Product:
        result = wide.prod(0)
    else:
        result = wide.amin(0) if op == hvd.Min else wide.amax(0)
    return result.to(dtype)


@pytest.mark.parametrize("dtype", REDUCED, ids=str)
@pytest.mark.parametrize("op", [hvd.Sum, hvd.Average, hvd.Min, hvd.Max, hvd.Product])
def test_allreduce(dtype, op):
    for seed, shape in enumerate(SHAPES):
        mine = tensor_of(RANK, shape, dtype, seed)
        before = mine.clone()
        expected = reduced(tensors(shape, dtype, seed), op)
        result = hvd.allreduce(mine, op=op)
        assert torch.allclose(result.double(), expected.double(), rtol=1e-2 if op == hvd.Average else 0.0)
        assert result.dtype == dtype and result.shape == torch.Size(shape)
        assert same(mine, before)
        assert hvd.allreduce_(mine, op=op) is mine
        assert same(mine, result)


def test_average_of_integers_truncates_towards_zero():
    assert hvd.allreduce(torch.tensor([-1, 1]) * (2 * SIZE - 1 if RANK == 0 else 0)).tolist() == [-1, 1]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.int32], ids=str)
def test_scale_factors(dtype):
    mine = torch.full((5,), RANK + 1).to(dtype)
    result = hvd.allreduce(mine, op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.5)
    assert result.tolist() == [SIZE * (SIZE + 1) / 2] * 5


def test_old_average_argument():
    with pytest.warns(DeprecationWarning):
        assert hvd.allreduce(torch.tensor([float(RANK)]), average=False).item() == SIZE * (SIZE - 1) / 2


def test_fp16_compression():
    values = [torch.arange(5.0) + rank for rank in range(SIZE)]
    result = hvd.allreduce(values[RANK], op=hvd.Sum, compression=hvd.Compression.fp16)
    assert same(result, sum(values))


def test_many_at_once_in_another_order_on_each_rank():
    order = [(i * (2 * RANK + 1) + RANK) % 64 for i in range(64)]
    handles = {i: hvd.allreduce_async(torch.full((i,), float(RANK)), name="many.%d" % i, op=hvd.Sum) for i in order}
    for i in reversed(order):
        assert hvd.synchronize(handles[i]).tolist() == [SIZE * (SIZE - 1) / 2] * i


def test_grouped():
    shapes_and_types = [((3,), torch.float32), ((2, 2), torch.float64), ((), torch.int32), ((0,), torch.float16)]
    mine = [tensor_of(RANK, *item) for item in shapes_and_types]
    expected = [reduced(tensors(*item), hvd.Sum) for item in shapes_and_types]
    assert all(map(same, hvd.grouped_allreduce(mine, op=hvd.Sum), expected))
    assert all(map(same, hvd.synchronize(hvd.grouped_allreduce_async(mine, op=hvd.Sum, name="g")), expected))
    results = hvd.grouped_allreduce_(mine, op=hvd.Sum)
    assert all(result is tensor for result, tensor in zip(results, mine))
    assert all(map(same, mine, expected))
    assert hvd.grouped_allreduce([]) == []


@pytest.mark.parametrize("dtype", MOVED, ids=str)
def test_allgather(dtype):
    for rows in (lambda rank: 2, lambda rank: rank, lambda rank: 3 * (rank == 0), lambda rank: 0):
        for rest in ((), (3,), (2, 5)):
            values = [tensor_of(rank, (rows(rank),) + rest, dtype) for rank in range(SIZE)]
            assert same(hvd.allgather(values[RANK]), torch.cat(values))


def test_allgather_of_rows_without_elements():
    assert hvd.allgather(torch.empty(1, 0, 2)).shape == (SIZE, 0, 2)


def test_grouped_allgather():
    values = [[torch.full((rank, 2), rank), torch.full((1,), float(rank))] for rank in range(SIZE)]
    for results in (
        hvd.grouped_allgather(values[RANK]),
        hvd.synchronize(hvd.grouped_allgather_async(values[RANK], name="g")),
    ):
        assert all(map(same, results, map(torch.cat, zip(*values))))


@pytest.mark.parametrize("dtype", MOVED, ids=str)
def test_broadcast(dtype):
    for root in range(SIZE):
        for shape in SHAPES:
            values = tensors(shape, dtype, seed=root)
            mine = values[RANK].clone()
            assert same(hvd.broadcast(mine, root), values[root])
            assert same(mine, values[RANK])
            assert hvd.broadcast_(mine, root) is mine
            assert same(mine, values[root])


def test_tensors_that_are_not_contiguous():
    values = [tensor_of(rank, (4, 6), torch.float32) for rank in range(SIZE)]
    mine = values[RANK].t()
    assert same(hvd.allreduce(mine, op=hvd.Sum), sum(values).t())
    assert same(hvd.allgather(mine), torch.cat([value.t() for value in values]))
    part = values[RANK].clone()
    hvd.allreduce_(part[:, ::2], op=hvd.Sum)
    hvd.broadcast_(part[:, 1::2], SIZE - 1)
    assert same(part[:, ::2], sum(values)[:, ::2])
    assert same(part[:, 1::2], values[SIZE - 1][:, 1::2])
    conjugated = torch.view_as_complex(torch.tensor([[1.0, 2.0], [3.0, float(RANK)]])).conj()
    assert same(hvd.broadcast(conjugated, 0), torch.tensor([1 - 2j, 3 + 0j]))


def test_a_parameter_is_reduced_in_place():
    parameter = torch.nn.Parameter(torch.full((3,), float(RANK)))
    hvd.allreduce_(parameter, op=hvd.Sum)
    assert parameter.tolist() == [SIZE * (SIZE - 1) / 2] * 3 and parameter.is_leaf


def test_gradient_of_allreduce():
    weights = [torch.arange(1.0, 4.0) * (rank + 1) for rank in range(SIZE)]
    for op, expected in ((hvd.Sum, sum(weights)), (hvd.Average, sum(weights) / SIZE)):
        tensor = torch.ones(3, requires_grad=True)
        (hvd.allreduce(tensor, op=op) * weights[RANK]).sum().backward()
        assert torch.allclose(tensor.grad, expected)
    first, second = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    results = hvd.grouped_allreduce([first, second], op=hvd.Sum)
    (results[0] * weights[RANK] + results[1] * 2 * weights[RANK]).sum().backward()
    assert torch.allclose(first.grad, sum(weights)) and torch.allclose(second.grad, 2 * sum(weights))


def test_gradient_of_allgather():
    tensor = torch.ones(RANK + 1, 2, requires_grad=True)
    gathered = hvd.allgather(tensor)
    weight = torch.arange(float(gathered.numel())).reshape(gathered.shape)
    (gathered * weight * (RANK + 1)).sum().backward()
    start = RANK * (RANK + 1) // 2
    assert torch.allclose(tensor.grad, weight[start : start + RANK + 1] * (SIZE + 1) / 2)


def test_gradient_of_broadcast():
    tensor = torch.ones(2, requires_grad=True)
    (hvd.broadcast(tensor, 1) * (RANK + 1)).sum().backward()
    assert tensor.grad.tolist() == [(SIZE + 1) / 2 if RANK == 1 else 0.0] * 2


def test_sparse_allreduce():
    def part(rank):
        rows = torch.arange(rank)  # rank 0 has no entry
        return torch.sparse_coo_tensor(rows[None], torch.ones(rank, 2) * (rank + 1), (SIZE, 2))

    expected = sum(part(rank).to_dense() for rank in range(SIZE))
    assert same(hvd.sparse_allreduce_async(part(RANK), name="s", op=hvd.Sum)().to_dense(), expected)
    assert torch.allclose(hvd.sparse_allreduce_async(part(RANK))().to_dense(), expected / SIZE)


def test_objects():
    offset = 7
    function = hvd.broadcast_object((lambda x: x + offset) if RANK == 1 else None, root_rank=1)
    assert function(1) == 8
    mine = {"rank": RANK}
    assert (hvd.broadcast_object(mine, 0, name="dict") is mine) == (RANK == 0)
    assert hvd.allgather_object({"rank": RANK, "list": [RANK] * RANK}) == [
        {"rank": rank, "list": [rank] * rank} for rank in range(SIZE)
    ]


def test_broadcast_parameters():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    for params in (
        model.state_dict(),
        model.named_parameters(),
        list(model.parameters()),
        list(model.named_parameters()),
    ):
        with torch.no_grad():
            for value in model.state_dict().values():
                value.fill_(RANK + 5)
        hvd.broadcast_parameters(params, root_rank=1)
        for value in model.parameters():
            assert bool((value == 6).all())
    state = {
        "tensor": torch.ones(2) * RANK,
        "flag": torch.tensor([RANK == 1]),
        "number": RANK,
        "text": "rank %d" % RANK,
    }
    hvd.broadcast_parameters(state, root_rank=1)
    assert state["tensor"].tolist() == [1.0, 1.0] and state["flag"].tolist() == [True]
    assert (state["number"], state["text"]) == (1, "rank 1")


def test_barrier_and_poll():
    hvd.barrier()
    handle = hvd.allreduce_async(torch.ones(1), name="polled")
    hvd.barrier()
    while not hvd.poll(handle):
        pass
    assert hvd.synchronize(handle).item() == 1.0


def test_a_name_in_use():
    handle = hvd.allreduce_async(torch.ones(1), name="twice") if RANK == 0 else None
    if RANK == 0:
        with pytest.raises(ValueError, match="twice"):
            hvd.allreduce_async(torch.ones(1), name="twice")
    hvd.barrier()
    handle = handle or hvd.allreduce_async(torch.ones(1), name="twice")
    assert hvd.synchronize(handle).item() == 1.0
    hvd.barrier()
