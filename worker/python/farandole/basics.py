"""Joining and leaving the job, and this process's place in it."""

import atexit
import ctypes
import os
import sys

from farandole import _handles, _later, _library, errors

# A wait in the native library is cut into slices of this length, since Python runs its signal handlers only between
# them.
_SLICE_SECONDS = 0.1

_pid = None  # the process that called init()
_atexit_registered = False
_dynamic = False
_generation = 0  # how many times this process has joined


def init(comm=None, process_sets=None):
    """Joins the job that this process was started in and waits for all ranks; outside of a job it is a group of one.

    Nothing happens when it is initialised already. shutdown() is called when the interpreter ends, but for an end by an
    exception that nobody caught.

    comm: None, or an empty list, for all ranks.
    process_sets: None; a list of ProcessSet to register, the same on all ranks; or "dynamic", so that sets may be added
    and removed later.

    ImportError: the native library cannot be loaded. ValueError: joining failed, with the reason, or two of the sets are
    the same. NotImplementedError: a subset of the ranks.
    """
    global _pid, _generation, _dynamic
    if comm is not None and not isinstance(comm, (list, tuple, range)):
        raise ValueError("hvd.init(comm) with a communicator needs MPI, which farandole does not use")
    if comm:
        raise _later.error("hvd.init(comm=[...]) with a list of ranks")
    library = _library.load()
    check_not_forked()
    if library.fdl_is_initialized():
        return
    _register_atexit()
    _pid = os.getpid()
    args = _library.InitArgs(ctypes.sizeof(_library.InitArgs), _SLICE_SECONDS)
    code = errors.DEADLINE_EXCEEDED
    while code == errors.DEADLINE_EXCEEDED:
        code = library.fdl_init(ctypes.byref(args))
    if code != errors.OK:
        raise ValueError("Horovod initialization failed. " + _library.last_error(library))
    _generation += 1
    _handles.restart()
    _dynamic = process_sets == "dynamic"
    if process_sets and not _dynamic:
        _register(process_sets)


def _register(process_sets):
    from farandole import process_sets as module  # it needs this one

    for index, process_set in enumerate(process_sets):
        try:
            module.register(process_set)
        except ValueError as error:
            if "duplicate" not in str(error):
                raise
            raise ValueError(
                "process_sets entry number %d is a duplicate: %s (%s)" % (index, process_set, error)
            ) from error


def dynamic_process_sets():
    """Whether init was called with process_sets="dynamic"."""
    return _dynamic


def shutdown():
    """Leaves the job in order: blocks until what all ranks have asked for is finished; the rest fails. Repeatable."""
    library = _library.loaded()
    if library is not None and _pid == os.getpid():
        library.fdl_shutdown()


def _register_atexit():
    global _atexit_registered
    if not _atexit_registered:
        atexit.register(_leave_at_exit)
        _atexit_registered = True


def _leave_at_exit():
    """Leaves in order, unless this process ends by an exception that nobody caught.

    Were that one to leave in order, its peers would be told, fail, and perhaps end before it has, and the launcher
    would name one of them as the first to fail. When it just ends, its exit is seen first.
    """
    if getattr(sys, "last_type", None) is None or hasattr(sys, "ps1"):
        shutdown()


def is_initialized():
    """Whether this very process is between init() and shutdown()."""
    library = _library.loaded()
    return library is not None and _pid == os.getpid() and library.fdl_is_initialized() == 1


def check_not_forked():
    """ValueError in a child that was forked after init(): it has no part in the group."""
    if _pid is not None and _pid != os.getpid():
        raise ValueError(
            "process %d was forked from process %d after hvd.init() and has no part in its group; only process %d "
            "itself can use hvd" % (os.getpid(), _pid, _pid)
        )


def need_library():
    """The library, once initialised. ValueError: not initialised, or in a forked child."""
    library = _library.loaded()
    check_not_forked()
    if library is None or library.fdl_is_initialized() != 1:
        raise ValueError(errors.NOT_INITIALIZED)
    return library


def generation():
    """A number that grows with every init() that joined: what was named for one group is not for the next."""
    return _generation


def _place(ask):
    library = _library.loaded()
    check_not_forked()
    value = -1 if library is None else ask(library)
    if value < 0:
        raise ValueError(errors.NOT_INITIALIZED)
    return value


def rank():
    """This process's number among all, from 0. ValueError: not initialised (this holds for all that follow, too)."""
    return _place(lambda library: library.fdl_rank())


def size():
    """How many processes the job has."""
    return _place(lambda library: library.fdl_size())


def local_rank():
    """This process's number among those of its host."""
    return _place(lambda library: library.fdl_local_rank())


def local_size():
    """How many processes of the job this host has."""
    return _place(lambda library: library.fdl_local_size())


def cross_rank():
    """The number of this host among the hosts that have this local rank."""
    return _place(lambda library: library.fdl_cross_rank())


def cross_size():
    """How many hosts have this local rank."""
    return _place(lambda library: library.fdl_cross_size())


def is_homogeneous():
    """Whether all hosts have the same number of processes."""
    return bool(_place(lambda library: library.fdl_is_homogeneous()))


start_timeline = _later.function("start_timeline")
stop_timeline = _later.function("stop_timeline")


def mpi_threads_supported():
    """ValueError always: there is no MPI here."""
    need_library()
    raise ValueError("Horovod MPI is not enabled; use --mpi to run with it. Farandole does not use MPI.")


def mpi_enabled():
    """False."""
    return False


def gloo_enabled():
    """True: what the original calls Gloo, collectives without MPI, is what farandole has of its own."""
    return True


def mpi_built():
    """False."""
    return False


def gloo_built():
    """True; see gloo_enabled."""
    return True


def nccl_built():
    """0: not in this version."""
    return 0


def ddl_built():
    """False."""
    return False


def ccl_built():
    """False."""
    return False


def cuda_built():
    """False: CUDA tensors travel through the host's memory in this version."""
    return False


def rocm_built():
    """False."""
    return False
