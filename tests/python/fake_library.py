"""A stand-in for the native library, for the rules that need none: a group of one whose operations finish when told to.

It moves no data of allreduce and broadcast that are in place, and copies otherwise. It knows no scaling and no errors
but those that are put into `errors`.
"""

import ctypes
import itertools

OK, DEADLINE_EXCEEDED, FAILED_PRECONDITION = 0, 4, 9
_ITEM_BYTES = (1, 1, 2, 2, 4, 8, 2, 4, 8, 1, 2)
_ALLGATHER, _BARRIER = 1, 6


class FakeLibrary(object):
    """`names`: wire names in the order of the calls. `finished`: False makes waits run out. `errors`: {name: (code,
    text)} for operations that fail when they are waited for."""

    def __init__(self):
        self.initialized = 0
        self.names = []
        self.finished = True
        self.errors = {}
        self.waits = 0
        self._handles = itertools.count(1000)
        self.open = {}  # handle: (name, gathered bytes, first dimensions)
        self._last_error = ""

    def fdl_init(self, args):
        self.initialized = 1
        return OK

    def fdl_shutdown(self):
        self.initialized = 0
        return OK

    def fdl_is_initialized(self):
        return self.initialized

    def fdl_rank(self):
        return 0 if self.initialized else -1

    def fdl_size(self):
        return 1 if self.initialized else -1

    def fdl_last_error(self):
        return self._last_error.encode()

    def fdl_process_set_ranks(self, number, ranks, room):
        return 1 if number == 0 else -1

    def _begin(self, request):
        handle = next(self._handles)
        name = request.name.decode()
        self.names.append(name)
        shape = request.shape[: request.dims] if request.kind != _BARRIER else []
        size = _ITEM_BYTES[request.dtype]
        for dim in shape:
            size *= dim
        data = None
        if request.kind == _ALLGATHER:
            data = ctypes.create_string_buffer(ctypes.string_at(request.input, size), size)
        elif request.kind != _BARRIER and request.output != request.input:
            ctypes.memmove(request.output, request.input, size)
        self.open[handle] = (name, data, (ctypes.c_int64 * 1)(*shape[:1]))
        return handle

    def fdl_begin(self, requests, count, handles):
        for i in range(count):
            handles[i] = self._begin(requests[i])
        return OK

    def fdl_poll(self, handle):
        return int(self.finished) if handle in self.open else -1

    def fdl_wait(self, handle, timeout_seconds):
        self.waits += 1
        if not self.finished:
            return DEADLINE_EXCEEDED
        code, self._last_error = self.errors.get(self.open[handle][0], (OK, ""))
        return code

    def fdl_result(self, handle, info):
        _, gathered, rows = self.open[handle]
        result = info._obj
        result.data = ctypes.addressof(gathered)
        result.bytes = len(gathered)
        result.rows = ctypes.cast(rows, ctypes.POINTER(ctypes.c_int64))
        result.rows_count = 1
        return OK

    def fdl_release(self, handle):
        del self.open[handle]
        return OK
