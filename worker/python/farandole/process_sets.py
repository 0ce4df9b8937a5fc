"""Process sets. In this version there is one, of all ranks: `global_process_set`."""

from farandole import _later, basics


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
add_process_set = _later.function("add_process_set")
remove_process_set = _later.function("remove_process_set")


def need_global(process_set):
    """NotImplementedError unless `process_set` is the one of all ranks."""
    if process_set is not global_process_set:
        raise _later.error("an operation on a process set other than hvd.global_process_set")
