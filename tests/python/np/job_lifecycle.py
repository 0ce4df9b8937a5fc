"""init, shutdown, init again; signals while waiting. The tests build on one another's group."""

import os
import signal
import threading

import pytest
import torch

import horovod.torch as hvd

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()


def works():
    return hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == SIZE


def test_places():
    assert (hvd.rank(), hvd.size()) == (int(os.environ["HOROVOD_RANK"]), int(os.environ["HOROVOD_SIZE"]))
    assert (hvd.local_rank(), hvd.local_size()) == (RANK, SIZE)
    assert (hvd.cross_rank(), hvd.cross_size()) == (0, 1)
    assert hvd.is_homogeneous() and hvd.is_initialized()
    assert hvd.global_process_set.ranks == list(range(SIZE))
    hvd.init()
    assert works()


def test_shutdown_and_init_again():
    for _ in range(3):
        assert works()
        hvd.shutdown()
        hvd.shutdown()
        assert not hvd.is_initialized()
        with pytest.raises(ValueError, match="has not been initialized"):
            works()
        hvd.init()
        assert (hvd.rank(), hvd.size()) == (RANK, SIZE)
        assert hvd.allreduce_async(torch.ones(1)) == 1
        assert works()


def test_ctrl_c_while_waiting():
    if RANK == 0:
        handle = hvd.allreduce_async(torch.ones(1), name="late", op=hvd.Sum)
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            hvd.synchronize(handle)
        timer.join()
        hvd.barrier()
        assert hvd.synchronize(handle).item() == SIZE
    else:
        hvd.barrier()
        assert hvd.allreduce(torch.ones(1), name="late", op=hvd.Sum).item() == SIZE


def test_a_call_rejected_on_one_rank_leaves_the_numbers_in_step():
    left = None
    if RANK == 0:
        with pytest.raises(ValueError, match="not supported"):
            hvd.allreduce(torch.ones(1, dtype=torch.complex64))
    else:
        left = hvd.allreduce_async(torch.ones(1))
    assert works()
    hvd.shutdown()
    if left is not None:
        with pytest.raises(hvd.HorovodInternalError):
            hvd.synchronize(left)
    hvd.init()
    assert works()


def test_a_shutdown_elsewhere_fails_what_waits_here():
    if RANK == 0:
        hvd.barrier()
        hvd.shutdown()
    else:
        handle = hvd.allreduce_async(torch.ones(1), name="nobody else's")
        hvd.barrier()
        with pytest.raises(hvd.HorovodInternalError, match="shut down"):
            hvd.synchronize(handle)
        hvd.shutdown()
    hvd.init()
    assert works()
