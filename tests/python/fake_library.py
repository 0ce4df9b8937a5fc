"""A stand-in for the native library, for the rules that need none: a group of one whose operations finish when told to.

It moves no data of allreduce and broadcast that are in place, and copies otherwise. It knows no scaling and no errors
but those that are put into `errors`.
"""

import ctypes
import itertools

OK, DEADLINE_EXCEEDED, FAILED_PRECONDITION = 0, 4, 9
_ITEM_BYTES = {0: 1, 4: 4, 5: 8, 6: 2, 7: 4, 8: 8, 10: 2}


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

    def _begin(self, name, tensor, gather=False):
        handle = next(self._handles)
        self.names.append(name.decode())
        shape = tensor.shape[: tensor.dims] if tensor is not None else []
        size = 0
        if tensor is not None:
            size = _ITEM_BYTES[tensor.dtype]
            for dim in shape:
                size *= dim
        data = ctypes.create_string_buffer(ctypes.string_at(tensor.input, size), size) if gather else None
        if tensor is not None and not gather and tensor.output != tensor.input:
            ctypes.memmove(tensor.output, tensor.input, size)
        self.open[handle] = (name.decode(), data, (ctypes.c_int64 * 1)(*shape[:1]))
        return handle

    def fdl_grouped_allreduce(self, names, tensors, count, args, handles):
        for i in range(count):
            handles[i] = self._begin(names[i], tensors[i])
        return OK

    def fdl_allgather(self, name, tensor, handle):
        handle._obj.value = self._begin(name, tensor._obj, gather=True)
        return OK

    def fdl_broadcast(self, name, tensor, root, handle):
        handle._obj.value = self._begin(name, tensor._obj)
        return OK

    def fdl_barrier(self, name, handle):
        handle._obj.value = self._begin(name, None)
        return OK

    def fdl_poll(self, handle):
        return int(self.finished) if handle in self.open else -1

    def fdl_wait(self, handle, timeout_seconds):
        self.waits += 1
        if not self.finished:
            return DEADLINE_EXCEEDED
        code, self._last_error = self.errors.get(self.open[handle][0], (OK, ""))
        return code

    def fdl_gathered(self, handle, data, size, first_dims):
        _, gathered, dims = self.open[handle]
        data._obj.value = ctypes.addressof(gathered)
        size._obj.value = len(gathered)
        ctypes.pointer(first_dims._obj)[0] = ctypes.cast(dims, ctypes.POINTER(ctypes.c_int64))
        return OK

    def fdl_release(self, handle):
        del self.open[handle]
        return OK
