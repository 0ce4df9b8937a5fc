"""Operations that were begun: their numbers, what they hold on to, and waiting for them.

Numbers come from one counter of the process, the first after init() is 1. Every call takes one, a call that is
rejected too: operations without a name are told apart by it, so the numbers must run alike on all ranks whatever
becomes of a call.
"""

import ctypes
import os
import threading

from farandole import _library, errors

# See basics.init: Ctrl-C and TERM are acted upon between two slices.
_SLICE_SECONDS = 0.1

_lock = threading.Lock()
_last = 0
_pending = {}  # number -> Operation


class Operation(object):
    """One call: one native handle, or several that ran as a group.

    keep: whatever must stay alive until the end, tensors above all.
    finish: called with this operation once all is done well; returns what synchronize() returns.
    """

    def __init__(self, library, native, keep, finish):
        self.library = library
        self.native = native
        self.keep = keep
        self.finish = finish

    def done(self):
        """Whether all parts have finished, well or not."""
        return all(self.library.fdl_poll(handle) != 0 for handle in self.native)

    def wait(self):
        """Waits until no part is unfinished. Returns the exception for the first part that failed, or None.

        What is raised instead comes from a signal handler; then it can be waited for again.
        """
        failure = None
        for handle in self.native:
            code = self.library.fdl_wait(handle, _SLICE_SECONDS)
            while code == errors.DEADLINE_EXCEEDED:
                code = self.library.fdl_wait(handle, _SLICE_SECONDS)
            if code != errors.OK and failure is None:
                failure = errors.exception(code, _library.last_error(self.library))
        return failure

    def release(self):
        """Gives the native handles back."""
        for handle in self.native:
            self.library.fdl_release(handle)
        self.native = ()
        self.keep = None

    def result(self, part):
        """What `part` has brought: (address, bytes, rows by rank, rank that joined last); see fdl_result_info. The
        memory is valid until release."""
        info = _library.ResultInfo(ctypes.sizeof(_library.ResultInfo))
        code = self.library.fdl_result(self.native[part], ctypes.byref(info))
        if code != errors.OK:
            raise errors.exception(code, _library.last_error(self.library))
        return info.data, info.bytes, info.rows[: info.rows_count], info.last_joined


def take():
    """The next number."""
    global _last
    with _lock:
        _last += 1
        return _last


def put(number, operation):
    """Remembers an operation that was begun until synchronize(number)."""
    with _lock:
        _pending[number] = operation


def restart():
    """A new group: numbers begin with 1 again, and what the last group left is forgotten."""
    global _last
    with _lock:
        left = list(_pending.values())
        _pending.clear()
        _last = 0
    for operation in left:
        operation.release()


def poll(handle):
    """Whether an operation has finished, so that synchronize() would not block.

    ValueError: no such handle, or synchronised already.
    """
    with _lock:
        operation = _pending.get(handle)
    if operation is None:
        raise ValueError("Handle %s was not created or has been cleared." % (handle,))
    return operation.done()


def synchronize(handle):
    """Waits for an operation and returns its result; None for a handle that is unknown or synchronised already.

    Ctrl-C and other signals are acted upon while it waits; the operation can then be waited for again.

    HorovodInternalError: the operation failed.
    """
    with _lock:
        operation = _pending.get(handle)
    if operation is None:
        return None
    failure = operation.wait()
    with _lock:
        if _pending.pop(handle, None) is None:
            return None  # another thread was faster
    try:
        if failure is not None:
            raise failure
        return operation.finish(operation)
    finally:
        operation.release()


def _renew_lock():
    """In a forked child: the lock may have been held by a thread that is not there any more."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)
