"""Small helpers that scripts import from horovod.common.util."""

import contextlib
import importlib.util
import os

from farandole import basics

_cache = {}  # answers of extension_available, by name


def extension_available(ext_base_name, verbose=False):
    """Whether this package serves the framework `ext_base_name` here: it has a module for it, and the framework is
    there."""
    if ext_base_name not in _cache:
        served = importlib.util.find_spec("farandole." + ext_base_name) is not None
        _cache[ext_base_name] = served and importlib.util.find_spec(ext_base_name) is not None
    if verbose:
        print("Extension %s is %savailable." % (ext_base_name, "" if _cache[ext_base_name] else "not "))
    return _cache[ext_base_name]


def check_extension(ext_name, ext_env_var=None, pkg_path=None, *args):
    """ImportError unless extension_available(); the other arguments are the original's, and have no meaning here."""
    base = ext_name.rsplit(".", 1)[-1].replace("mpi_lib_v2", "torch").replace("mpi_lib", "tensorflow")
    if not extension_available(base):
        raise ImportError(
            "Extension %s is not available: farandole has no part for %s, or it is not installed." % (ext_name, base)
        )


def check_installed_version(name, version, exception=None):
    """Nothing: no part of this package is compiled against a framework, so any version will do."""


def gpu_available(ext_base_name, verbose=False):
    """Whether the framework has a GPU."""
    if ext_base_name != "torch" or not extension_available(ext_base_name, verbose):
        return False
    import torch

    return torch.cuda.is_available()


def mpi_built(verbose=False):
    """False."""
    return basics.mpi_built()


def gloo_built(verbose=False):
    """True; see basics.gloo_enabled."""
    return basics.gloo_built()


def nccl_built(verbose=False):
    """False."""
    return bool(basics.nccl_built())


def ddl_built(verbose=False):
    """False."""
    return basics.ddl_built()


def ccl_built(verbose=False):
    """False."""
    return basics.ccl_built()


@contextlib.contextmanager
def env(**variables):
    """Sets environment variables for a while; those that are None are left alone."""
    before = {name: os.environ.get(name) for name, value in variables.items() if value is not None}
    os.environ.update({name: variables[name] for name in before})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def get_env_rank_and_size():
    """(rank, size) as the launcher's environment has them, whichever launcher it was; (0, 1) without one."""
    for rank, size in (
        ("HOROVOD_RANK", "HOROVOD_SIZE"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
    ):
        if rank in os.environ and size in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    return 0, 1


def split_list(items, count):
    """`items` in `count` consecutive parts of about equal length."""
    short, rest = divmod(len(items), count)
    starts = [short * i + min(i, rest) for i in range(count + 1)]
    return [items[start:end] for start, end in zip(starts, starts[1:])]


def num_rank_is_power_2(num_rank):
    """Whether it is 1, 2, 4, ..."""
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def is_iterable(x):
    """Whether it can be iterated over."""
    try:
        iter(x)
    except TypeError:
        return False
    return True
