"""Ranks that disagree about an operation are told so, all of them, and go on."""

import pytest
import torch
from helpers import same

import horovod.torch as hvd

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()

# For each: what rank 0 does, what rank 1 does, and what of it the error must tell.
CASES = {
    "shape": (
        lambda n: hvd.allreduce(torch.ones(3), name=n),
        lambda n: hvd.allreduce(torch.ones(2), name=n),
        ["[3]", "[2]"],
    ),
    "dims": (
        lambda n: hvd.allreduce(torch.ones(4), name=n),
        lambda n: hvd.allreduce(torch.ones(2, 2), name=n),
        ["[4]", "[2, 2]"],
    ),
    "type": (
        lambda n: hvd.allreduce(torch.ones(3), name=n),
        lambda n: hvd.allreduce(torch.ones(3).double(), name=n),
        ["float32", "float64"],
    ),
    "op": (
        lambda n: hvd.allreduce(torch.ones(3), name=n, op=hvd.Sum),
        lambda n: hvd.allreduce(torch.ones(3), name=n, op=hvd.Max),
        [],
    ),
    "factor": (
        lambda n: hvd.allreduce(torch.ones(3), name=n, prescale_factor=2.0),
        lambda n: hvd.allreduce(torch.ones(3), name=n, prescale_factor=4.0),
        ["2", "4"],
    ),
    "root": (
        lambda n: hvd.broadcast(torch.ones(3), 0, name=n),
        lambda n: hvd.broadcast(torch.ones(3), 1, name=n),
        ["0", "1"],
    ),
    "broadcast": (
        lambda n: hvd.broadcast(torch.ones(3), 0, name=n),
        lambda n: hvd.broadcast(torch.ones(4), 0, name=n),
        ["[3]", "[4]"],
    ),
    "bytes": (
        lambda n: hvd.broadcast(torch.ones(3).bool(), 0, name=n),
        lambda n: hvd.broadcast(torch.ones(3).to(torch.int8), 0, name=n),
        [],
    ),
    "gathered": (
        lambda n: hvd.allgather(torch.ones(3, 2), name=n),
        lambda n: hvd.allgather(torch.ones(3, 4), name=n),
        ["2", "4"],
    ),
    "gathered type": (
        lambda n: hvd.allgather(torch.ones(3), name=n),
        lambda n: hvd.allgather(torch.ones(3).half(), name=n),
        ["float32", "float16"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_mismatch(case):
    name = "mismatch " + case
    with pytest.raises(hvd.HorovodInternalError) as caught:
        CASES[case][min(RANK, 1)](name)
    text = str(caught.value)
    assert name in text
    for word in CASES[case][2]:
        assert word in text
    assert "rank 0" in text.lower() and "rank 1" in text.lower()
    assert len(set(hvd.allgather_object(text))) == 1, "ranks were told different things"
    assert same(hvd.allreduce(torch.ones(3), name=name, op=hvd.Sum), torch.full((3,), float(SIZE)))


def test_a_root_that_is_not_there():
    with pytest.raises((ValueError, hvd.HorovodInternalError), match=str(SIZE)):
        hvd.broadcast(torch.ones(1), SIZE)
    assert hvd.broadcast(torch.tensor([RANK]), 1).item() == 1
