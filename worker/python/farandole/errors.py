"""The exceptions of this package, and the one place where a code of the C interface becomes one of them."""

NOT_INITIALIZED = "Horovod has not been initialized; use hvd.init()."

# fdl_code of worker/capi/farandole.h.
OK = 0
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
UNIMPLEMENTED = 12


class HorovodInternalError(RuntimeError):
    """An operation failed: the ranks disagree about it, the group was shut down, or a peer was lost."""


class HostsUpdatedInterrupt(RuntimeError):
    """The membership of the job has changed and the training function should start over.

    `skip_sync`: the state needs no new broadcast, since ranks only went away.
    """

    def __init__(self, skip_sync=False):
        super().__init__("the hosts of the job have changed")
        self.skip_sync = skip_sync


class HorovodVersionMismatchError(ImportError):
    """A framework is not the one that an extension was compiled for. Kept for scripts that name it: nothing here is
    compiled against a framework, so it is never raised."""

    def __init__(self, name, version, installed_version):
        super().__init__(
            "Framework %s installed with version %s but found version %s." % (name, installed_version, version)
        )
        self.name = name
        self.version = version
        self.installed_version = installed_version


def exception(code, message):
    """The exception for a `code` other than OK.

    ValueError: the caller's own arguments. NotImplementedError: something that this version does not do.
    HorovodInternalError: everything else.
    """
    if code == INVALID_ARGUMENT:
        return ValueError(message)
    if code == UNIMPLEMENTED:
        return NotImplementedError(message)
    return HorovodInternalError(message)
