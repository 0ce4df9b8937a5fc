"""alltoall, reducescatter, join, Adasum, bool, and process sets, against local oracles; for three ranks or more."""

import pytest
import torch
from helpers import MOVED, REDUCED, same, tensor_of, tensors

import horovod.torch as hvd

hvd.init(process_sets="dynamic")
RANK, SIZE = hvd.rank(), hvd.size()


@pytest.mark.parametrize("dtype", MOVED, ids=str)
def test_alltoall_with_splits(dtype):
    # Rank r sends (r + q) % 3 rows to rank q.
    splits = [[(r + q) % 3 for q in range(SIZE)] for r in range(SIZE)]
    inputs = [tensor_of(r, (sum(splits[r]), 2), dtype, 5) for r in range(SIZE)]
    received, counts = hvd.alltoall(inputs[RANK], splits=torch.tensor(splits[RANK]))
    expected = [inputs[r].split(splits[r])[RANK] for r in range(SIZE)]
    assert same(received, torch.cat(expected))
    assert counts.dtype == torch.int32 and counts.tolist() == [splits[r][RANK] for r in range(SIZE)]


def test_alltoall_without_splits_and_with_none_at_all():
    mine = torch.arange(SIZE * 2).reshape(SIZE, 2) + 100 * RANK
    received = hvd.alltoall(mine)
    assert received.tolist() == [[2 * RANK + 100 * r, 2 * RANK + 1 + 100 * r] for r in range(SIZE)]
    with pytest.raises(ValueError, match="cannot be divided evenly"):
        hvd.alltoall(torch.ones(SIZE + 1))
    with pytest.raises(ValueError, match="splits"):
        hvd.alltoall(torch.ones(3), splits=[1.5])
    nothing, counts = hvd.alltoall(torch.ones(0, 3), splits=[0] * SIZE)
    assert nothing.shape == (0, 3) and counts.tolist() == [0] * SIZE


def test_alltoall_gradient_goes_back_the_same_ways():
    splits = [RANK + 1] * SIZE
    mine = torch.ones(sum(splits), requires_grad=True)
    received, _ = hvd.alltoall(mine, splits=splits)
    (received * (RANK + 1)).sum().backward()
    assert mine.grad.tolist() == [float(r + 1) for r in range(SIZE) for _ in range(RANK + 1)]


@pytest.mark.parametrize("dtype", REDUCED, ids=str)
def test_reducescatter(dtype):
    for rows in (0, 1, SIZE, 2 * SIZE + 1):
        inputs = tensors((rows, 3), dtype, rows)
        total = torch.stack([one.to(torch.float64) for one in inputs]).sum(0).to(dtype)
        shares = [rows // SIZE + (1 if r < rows % SIZE else 0) for r in range(SIZE)]
        share = hvd.reducescatter(inputs[RANK], op=hvd.Sum)
        assert same(share, total.split(shares)[RANK])
    grouped = hvd.grouped_reducescatter([inputs[RANK], inputs[RANK][:, :1]], op=hvd.Sum)
    assert same(grouped[0], total.split(shares)[RANK]) and same(grouped[1], total[:, :1].split(shares)[RANK])


def test_reducescatter_gradient():
    mine = torch.ones(2 * SIZE, requires_grad=True)
    hvd.reducescatter(mine, op=hvd.Average).sum().backward()
    assert mine.grad.tolist() == [1.0] * (2 * SIZE)


def test_bool_and_8_bit_sums():
    mine = torch.tensor([RANK == 0, False, True])
    assert hvd.allreduce(mine, op=hvd.Sum).tolist() == [True, False, True]
    assert hvd.allreduce(mine, op=hvd.Max).tolist() == [True, False, True]
    assert hvd.allreduce(mine, op=hvd.Min).tolist() == [False, False, True]
    assert hvd.allreduce(mine, op=hvd.Product).tolist() == [False, False, True]
    with pytest.raises(ValueError, match="no average of bool"):
        hvd.allreduce(mine)
    assert hvd.broadcast(mine, 0).tolist() == [True, False, True]
    large = torch.tensor([200 if RANK == 0 else 100 if RANK == 1 else 0], dtype=torch.uint8)
    assert hvd.allreduce(large, op=hvd.Sum).item() == 300 % 256, "8-bit sums wrap around"
    signed = torch.tensor([100 if RANK < 2 else 0], dtype=torch.int8)
    assert hvd.allreduce(signed, op=hvd.Sum).item() == 200 - 256


def test_adasum():
    # Parallel gradients are averaged, orthogonal ones added.
    assert torch.allclose(hvd.allreduce(torch.tensor([1.0, 2.0]), op=hvd.Adasum), torch.tensor([1.0, 2.0]))
    mine = torch.zeros(SIZE)
    mine[RANK] = RANK + 1.0
    assert torch.allclose(hvd.allreduce(mine, op=hvd.Adasum), torch.arange(SIZE) + 1.0)
    with pytest.raises(ValueError, match="no adasum of int32"):
        hvd.allreduce(torch.ones(1, dtype=torch.int32), op=hvd.Adasum)


# From here on everything has a name: after operations that not all ranks make, those without one do not match any more.
def test_process_sets_that_overlap_come_and_go():
    ends = hvd.add_process_set([SIZE - 1, 0])
    assert ends.ranks == sorted({0, SIZE - 1}) if SIZE > 1 else True
    last = hvd.add_process_set(hvd.ProcessSet([SIZE - 1]))
    assert (ends.process_set_id, last.process_set_id) == (1, 2)
    with pytest.raises(ValueError, match="duplicate"):
        hvd.add_process_set([0, SIZE - 1])
    for _ in range(3):
        waiting = hvd.allreduce_async(torch.ones(1000), op=hvd.Sum, name="all")
        if ends.included():
            assert ends.rank() == (0 if RANK == 0 else 1)
            assert hvd.allreduce(torch.tensor([1.0 + RANK]), name="a", process_set=ends).item() == 1 + (SIZE - 1) / 2
            assert hvd.allgather(torch.tensor([RANK]), name="a", process_set=ends).tolist() == ends.ranks
            assert hvd.broadcast(torch.tensor([RANK]), SIZE - 1, name="a", process_set=ends).item() == SIZE - 1
            assert hvd.alltoall(torch.tensor([RANK, RANK]), name="a", process_set=ends).tolist() == ends.ranks
            hvd.barrier(process_set=ends)
        else:
            with pytest.raises(ValueError, match="is not in process set 1"):
                hvd.allreduce(torch.ones(1), process_set=ends)
        if last.included():
            assert hvd.allreduce(torch.tensor([3.0]), process_set=last).item() == 3
        assert hvd.synchronize(waiting).tolist() == [float(SIZE)] * 1000
    if ends.included():
        with pytest.raises(ValueError, match="rank 1 is not in process set|there is no rank"):
            hvd.broadcast(torch.ones(1), 1 if SIZE > 2 else 7, process_set=ends)
        with pytest.raises(hvd.HorovodInternalError, match="Mismatched"):
            hvd.allreduce(torch.ones(1 + ends.rank()), name="differs", process_set=ends)
        assert hvd.allreduce(torch.ones(1), name="b", process_set=ends).item() == 1
    assert hvd.remove_process_set(last) is True and last.process_set_id is None
    again = hvd.add_process_set([0])
    assert again.process_set_id == 2
    assert hvd.remove_process_set(again) and hvd.remove_process_set(ends)
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum, name="b").item() == SIZE


def test_an_optimizer_of_a_process_set_and_one_of_all():
    everybody = hvd.ProcessSet(range(SIZE))
    pair = hvd.add_process_set([0, 1]) if SIZE > 2 else hvd.global_process_set
    assert everybody.process_set_id is None
    models = [torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)]  # with equal names of parameters
    optimizers = [
        hvd.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=1.0),
            named_parameters=model.named_parameters(),
            process_set=process_set,
        )
        for model, process_set in zip(models, (pair, hvd.global_process_set))
    ]
    for model in models:
        torch.nn.init.zeros_(model.weight)
        torch.nn.init.zeros_(model.bias)
        model(torch.full((1, 2), 1.0 + RANK)).sum().backward()
    for optimizer in optimizers:
        optimizer.step()
    average = {2: 1.5}.get(SIZE, (SIZE + 1) / 2)
    assert torch.allclose(models[1].weight, torch.full((1, 2), -average))
    own = 1.5 if pair.included() else 1.0 + RANK
    assert torch.allclose(models[0].weight, torch.full((1, 2), -own))
    if SIZE > 2:
        hvd.remove_process_set(pair)


def test_uneven_batches_end_with_join():
    for _ in range(2):
        for batch in range(RANK + 2):
            active = [r for r in range(SIZE) if r + 2 > batch]
            total = hvd.allreduce(torch.tensor([1.0 + RANK]), op=hvd.Average, name="batch.%d" % batch)
            assert torch.isclose(total, torch.tensor([sum(1.0 + r for r in active) / SIZE])).all()
            assert hvd.allgather(torch.tensor([RANK]), name="gather.%d" % batch).tolist() == active
            assert hvd.broadcast(torch.tensor([RANK]), SIZE - 1, name="cast.%d" % batch).item() == SIZE - 1
        assert hvd.join() == SIZE - 1
