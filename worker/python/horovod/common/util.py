"""Small helpers; see farandole.util."""

from farandole.util import (  # noqa: F401
    _cache,
    ccl_built,
    check_extension,
    check_installed_version,
    ddl_built,
    env,
    extension_available,
    gloo_built,
    gpu_available,
    is_iterable,
    mpi_built,
    nccl_built,
    num_rank_is_power_2,
    split_list,
)
