"""Process sets: some of the ranks, who run operations among themselves. `global_process_set` is all of them."""

import ctypes
import os

from farandole import _library, basics, errors

# See basics.init: Ctrl-C and TERM are acted upon between two slices.
_SLICE_SECONDS = 0.1


class ProcessSet(object):
    """A set of ranks: `process_set_id` (None until registered), `ranks` (sorted).

    ValueError: `ranks` is not a sequence of ints.
    """

    def __init__(self, ranks):
        ranks = list(ranks)
        if not all(isinstance(rank, int) for rank in ranks):
            raise ValueError("ranks of a process set must be ints, not %r" % (ranks,))
        self.process_set_id = None
        self.mpi_comm = None
        self.ranks = sorted(ranks)

    def size(self):
        """How many ranks it has; None when it is not registered."""
        return None if self.process_set_id is None else len(self.ranks)

    def rank(self):
        """This process's place in it; None when it is not registered. ValueError: this process is not in it."""
        if self.process_set_id is None:
            return None
        if not self.included():
            raise ValueError("Process is not part of provided process set.")
        return self.ranks.index(basics.rank())

    def included(self):
        """Whether this process is in it."""
        return basics.rank() in self.ranks

    def __str__(self):
        return "ProcessSet(process_set_id=%s, ranks=%s, mpi_comm=%s)" % (
            self.process_set_id,
            self.ranks,
            self.mpi_comm,
        )


class _GlobalProcessSet(ProcessSet):
    """All ranks; what they are is asked for each time, since it changes from one init to the next."""

    def __init__(self):
        super().__init__([])
        self.process_set_id = 0

    @property
    def ranks(self):
        """All ranks; none before init."""
        return list(range(basics.size())) if basics.is_initialized() else []

    @ranks.setter
    def ranks(self, ranks):
        pass


global_process_set = _GlobalProcessSet()


def _need_dynamic(what):
    if basics.dynamic_process_sets() or os.environ.get("HOROVOD_DYNAMIC_PROCESS_SETS", "0") not in ("", "0"):
        return
    raise ValueError("Set HOROVOD_DYNAMIC_PROCESS_SETS=1 to allow %s process sets after initialization." % what)


def _until_all_have_called(call):
    """Repeats `call(seconds)`, which gives up after so long, until it does not; raises what its code means."""
    code = errors.DEADLINE_EXCEEDED
    while code == errors.DEADLINE_EXCEEDED:
        code = call(_SLICE_SECONDS)
    if code != errors.OK:
        raise errors.exception(code, _library.last_error(_library.loaded()))


def register(process_set):
    """add_process_set without looking whether sets may be added now: what init does."""
    library = basics.need_library()
    ranks = (ctypes.c_int32 * len(process_set.ranks))(*process_set.ranks)
    number = ctypes.c_int32()
    _until_all_have_called(
        lambda seconds: library.fdl_add_process_set(ranks, len(ranks), seconds, ctypes.byref(number))
    )
    process_set.process_set_id = number.value
    return process_set


def add_process_set(process_set):
    """Registers a ProcessSet, or a list of ranks, and returns it. All ranks of the job call this, in the same order.

    ValueError: HOROVOD_DYNAMIC_PROCESS_SETS=1 is not set (nor init(process_sets="dynamic") called), the same ranks are
    a set already, they make none, or the ranks of the job do not want the same.
    """
    _need_dynamic("adding")
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    return register(process_set)


def remove_process_set(process_set):
    """Removes a registered set; all ranks of the job call this, in the same order. False for one that is not registered
    or the global one."""
    if process_set.process_set_id in (None, 0):
        return False
    _need_dynamic("removing")
    library = basics.need_library()
    number, process_set.process_set_id = process_set.process_set_id, None
    _until_all_have_called(lambda seconds: library.fdl_remove_process_set(number, seconds))
    return True


def ids_and_ranks():
    """{number: ranks} of all sets."""
    library = basics.need_library()

    def numbers(ask):
        count = ask(None, 0)
        room = (ctypes.c_int32 * count)()
        return list(room[: min(count, ask(room, count))])

    return {
        number: numbers(lambda room, count, number=number: library.fdl_process_set_ranks(number, room, count))
        for number in numbers(library.fdl_process_set_ids)
    }


def number_of(process_set):
    """The number of a registered set. ValueError: it is not registered."""
    if process_set.process_set_id is None:
        raise ValueError("%s is not registered: add it by hvd.add_process_set, or give it to hvd.init" % process_set)
    return process_set.process_set_id
