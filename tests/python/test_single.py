"""One process without a launcher: a group of one, imports, and every Python."""

import ast
import glob
import os
import subprocess
import sys

import pytest
import torch

import farandole
import horovod.torch as hvd
from farandole import _library

PACKAGES = [
    os.path.dirname(os.path.realpath(farandole.basics.__file__)),
    os.path.realpath(os.path.dirname(sys.modules["horovod"].__file__)),
]


@pytest.fixture(autouse=True)
def joined():
    hvd.init()
    yield
    hvd.shutdown()


def python(program, code, **environment):
    """What the code prints."""
    done = subprocess.run(
        [program, "-B", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=120,
        env=dict(os.environ, **environment),
        universal_newlines=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_places():
    assert (hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size()) == (
        0,
        1,
        0,
        1,
        0,
        1,
    )
    assert hvd.is_homogeneous() is True


def test_the_packages_version_is_the_librarys():
    assert _library.load().fdl_version().decode() == farandole.__version__


def test_operations_of_one():
    values = torch.arange(6.0).reshape(2, 3)
    for result in (
        hvd.allreduce(values),
        hvd.allgather(values),
        hvd.broadcast(values, 0),
        hvd.grouped_allreduce([values])[0],
    ):
        assert torch.equal(result, values) and result.data_ptr() != values.data_ptr()
    assert torch.equal(hvd.allreduce(values, op=hvd.Sum, prescale_factor=2.0), values * 2)
    assert hvd.broadcast_object({"a": 1}) == {"a": 1}
    assert hvd.allgather_object("x") == ["x"]
    hvd.barrier()


def test_the_optimizer_is_the_ordinary_one():
    models = []
    for wrap in (
        lambda optimizer: optimizer,
        hvd.DistributedOptimizer,
        lambda optimizer: hvd.DistributedOptimizer(optimizer, op=hvd.Adasum),
    ):
        torch.manual_seed(1)
        model = torch.nn.Linear(3, 2)
        optimizer = wrap(torch.optim.Adam(model.parameters()))
        hvd.broadcast_optimizer_state(optimizer, 0)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(4, 3)).pow(2).sum().backward()
            optimizer.step()
        models.append(model)
    assert all(torch.equal(model.weight, models[0].weight) for model in models)


def test_a_root_or_name_that_is_wrong_is_a_value_error():
    with pytest.raises((ValueError, hvd.HorovodInternalError)):
        hvd.broadcast(torch.ones(1), 1)
    assert hvd.allreduce(torch.ones(1)).item() == 1.0


def test_init_and_shutdown_many_times():
    for _ in range(5):
        hvd.shutdown()
        hvd.init()
        assert hvd.allreduce(torch.ones(1)).item() == 1.0


def test_importing_is_light():
    """What costs time is the native library and cloudpickle; neither comes before it is needed. The rest is a few small
    modules."""
    added = python(
        sys.executable,
        """
import sys, torch
before = set(sys.modules)
import horovod.torch
added = sorted(set(sys.modules) - before)
print("\\n".join(added))
assert "cloudpickle" not in added
with open("/proc/self/maps") as maps:
    assert "libfarandole" not in maps.read()
""",
    ).split()
    foreign = [name for name in added if name.split(".")[0] not in ("farandole", "horovod")]
    assert foreign == []
    assert 20 < len(added) < 60


def test_the_names_of_the_original():
    python(
        sys.executable,
        """
import os
import horovod
from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt, HorovodVersionMismatchError
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.common.util import check_extension, check_installed_version, env, extension_available, gloo_built
from horovod.common.util import gpu_available, is_iterable, mpi_built, nccl_built, num_rank_is_power_2, split_list
from horovod.runner.common.util.env import get_env_rank_and_size
from horovod.torch.compression import Compression, Compressor
from horovod.torch.functions import allgather_object, broadcast_object, broadcast_optimizer_state, broadcast_parameters
from horovod.torch.mpi_ops import Average, Sum, allreduce_async_, is_homogeneous, poll, rank, size, synchronize
from horovod.torch.optimizer import DistributedOptimizer
import horovod.torch as hvd

assert hvd.mpi_ops.synchronize is hvd.synchronize and hvd.HorovodInternalError is HorovodInternalError
assert gloo_built() and not mpi_built() and extension_available("torch") and not extension_available("mxnet")
assert hvd.gloo_enabled() and hvd.gloo_built() and not hvd.mpi_enabled()
assert hvd.nccl_built() == 0 and not hvd.cuda_built()
assert HostsUpdatedInterrupt(True).skip_sync and issubclass(HorovodInternalError, RuntimeError)
assert get_env_rank_and_size() == (3, 8)
assert split_list([1, 2, 3, 4, 5], 2) == [[1, 2, 3], [4, 5]] and num_rank_is_power_2(8) and not num_rank_is_power_2(6)
with env(FARANDOLE_TEST="1", OTHER=None):
    assert os.environ["FARANDOLE_TEST"] == "1"
assert "FARANDOLE_TEST" not in os.environ
""",
        HOROVOD_RANK="3",
        HOROVOD_SIZE="8",
    )


def test_the_interpreter_ends_with_operations_unfinished():
    python(
        sys.executable,
        """
import horovod.torch as hvd, torch
hvd.init()
for i in range(20):
    hvd.allreduce_async(torch.ones(1000))
""",
    )


def sources():
    found = [path for package in PACKAGES for path in glob.glob(os.path.join(package, "**", "*.py"), recursive=True)]
    assert len(found) > 30
    return found


def test_sources_are_python_3_8():
    for path in sources():
        with open(path, encoding="utf-8") as file:
            ast.parse(file.read(), path, feature_version=(3, 8))


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13"])
def test_every_python_can_use_it(version):
    """All of it compiles; the parts that need no framework are imported, and join a group of one."""
    programs = glob.glob(os.path.expanduser("~/.pyenv/versions/%s.*/bin/python" % version))
    programs += [
        path for path in ("/usr/bin/python" + version, "/usr/local/bin/python" + version) if os.path.exists(path)
    ]
    if not programs:
        pytest.skip("there is no Python %s here" % version)
    output = python(
        programs[0],
        """
import sys
for path in %r:
    with open(path, encoding="utf-8") as file:
        compile(file.read(), path, "exec")
import horovod, horovod.common.util, horovod.common.exceptions, horovod.runner
import farandole.basics as hvd
hvd.init()
print(sys.version_info[:2], hvd.rank(), hvd.size())
""" % (sources(),),
    )
    assert output.split() == ["(%s," % version.split(".")[0], version.split(".")[1] + ")", "0", "1"]
