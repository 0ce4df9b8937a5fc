"""Trains a little while it makes other processes after init, in the way that its argument names."""

import multiprocessing
import os
import subprocess
import sys

import torch

import horovod.torch as hvd


def square(value):
    return value * value


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        assert not hvd.is_initialized()  # this is another process
        return torch.full((3,), float(index)), torch.tensor([1.0])


def in_loader():
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=4, num_workers=2)
    return [batch for _ in range(2) for batch in loader]


def in_subprocess():
    output = subprocess.run([sys.executable, "-c", "print(7 * 7)"], stdout=subprocess.PIPE, check=True).stdout
    assert int(output) == 49
    assert os.popen("echo there").read() == "there\n"


def in_pool(method):
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(square, range(8)) == [n * n for n in range(8)]


def in_os_fork():
    """A child that uses hvd is refused, and ends as any process does, through its exit handlers."""
    child = os.fork()
    if child == 0:
        try:
            hvd.allreduce(torch.ones(1))
        except ValueError as error:
            assert "was forked" in str(error)
            hvd.shutdown()
            sys.exit(5)
        os._exit(1)
    assert os.waitpid(child, 0)[1] >> 8 == 5


def main(kind):
    hvd.init()
    model = torch.nn.Linear(3, 1)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1e-4))
    hvd.broadcast_parameters(model.state_dict(), 0)
    work = {
        "loader": in_loader,
        "subprocess": in_subprocess,
        "fork": lambda: in_pool("fork"),
        "spawn": lambda: in_pool("spawn"),
        "os_fork": in_os_fork,
    }[kind]
    train = work() or [(torch.ones(4, 3), torch.ones(4, 1))] * 5
    for inputs, targets in train:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
    if kind != "spawn":  # that one takes long, since each process imports all anew
        work()
    weights = hvd.allgather_object(model.weight.tolist())
    assert all(weight == weights[0] for weight in weights)
    print("trained %d" % hvd.rank(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
