"""GradientExchange: sends an optimizer's gradients as backward() makes them, and collects what comes back.

A parameter is in one of three states:

    waiting --its last backward pass--> sent --synchronize--> waiting
       |                                 ^
       +--- synchronize: as it is -------+       (with zeros when there is no gradient)

In a group, what is sent waits for the last member.
"""

import weakref

import torch

from farandole.errors import HorovodInternalError
from farandole.torch import _groups, _names, ops


class GradientExchange(object):
    """Serves one optimizer. With one rank it does nothing."""

    def __init__(self, names, compression, passes, op, predivide_factor, groups, sparse_as_dense, process_set):
        """names: {parameter: name}. The rest as in DistributedOptimizer. ValueError: `passes` or `groups` make no
        sense."""
        self._compression = compression
        self._op = op
        self._factors = {"prescale_factor": 1.0 / predivide_factor, "postscale_factor": predivide_factor}
        self._sparse_as_dense = sparse_as_dense
        self._process_set = process_set
        self._active = process_set.included() and process_set.size() > 1
        self._names = {}
        self._left = {}  # backward passes until it is sent
        self._touched = set()  # got a gradient since synchronize
        self._sent = {}  # parameter: what collects it
        self._hooks = {}
        self._sparse = set()  # their last gradient was sparse
        self.set_passes(passes)
        self._groups, self._group_of = _groups.assign(groups, names, self._active, process_set)
        self._add(names)

    def set_passes(self, passes):
        """How many backward passes are accumulated before gradients are sent. ValueError: not positive."""
        if passes <= 0:
            raise ValueError("must set backward_passes_per_step > 0")
        self._passes = passes
        self._left = dict.fromkeys(self._left, passes)

    def busy(self):
        """Whether a gradient has come that synchronize() has not finished."""
        return bool(self._touched or self._sent)

    def synchronize(self, param_groups):
        """Makes every `.grad` that of all ranks. Parameters that are new in `param_groups` are joined to it.

        After an error of an operation, the first of which is raised, all parameters are waiting again.
        """
        if not self._active:
            return
        self._add({p: name for p, name in _names.by_place(param_groups).items() if p not in self._names})
        for parameter in self._names:
            if parameter not in self._sent and (parameter.requires_grad or parameter.grad is not None):
                self._watch(parameter)
                self._ready(parameter)
        for group in self._groups:
            self._send([parameter for parameter in group.ready() if parameter not in self._sent])  # others are frozen
        failure = self._collect()
        if failure is not None:
            raise failure

    def drop(self):
        """Waits for what was sent, however it ends; all parameters are waiting again."""
        self._collect()

    def _add(self, names):
        if names:
            scope = _names.scope(names.values())
            for parameter, name in names.items():
                self._names[parameter] = scope + name
                self._left[parameter] = self._passes
                self._watch(parameter)

    def _collect(self):
        failure = None
        for collect in dict.fromkeys(self._sent.values()):
            try:
                collect()
            except HorovodInternalError as error:
                failure = failure or error
        self._touched.clear()
        self._sent.clear()
        self._left = dict.fromkeys(self._names, self._passes)
        for group in self._groups:
            group.clear()
        return failure

    def _watch(self, parameter):
        """Has _gradient_came called for `parameter` from now on, for as long as this object lives."""
        if not self._active or parameter in self._hooks or not parameter.requires_grad:
            return
        self_reference = weakref.ref(self)
        parameter_reference = weakref.ref(parameter)

        def came(*_):
            exchange, its_parameter = self_reference(), parameter_reference()
            if exchange is not None and its_parameter is not None:
                exchange._gradient_came(its_parameter)

        if hasattr(parameter, "register_post_accumulate_grad_hook"):
            self._hooks[parameter] = parameter.register_post_accumulate_grad_hook(came)
        else:
            with torch.enable_grad():
                accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
            # The accumulator, and the hook with it, lives only as long as it is held.
            self._hooks[parameter] = (accumulator, accumulator.register_hook(came))

    def _gradient_came(self, parameter):
        if self._left[parameter] <= 0:
            raise AssertionError(
                "Gradients were computed more than backward_passes_per_step times before call to step(). Increase "
                "backward_passes_per_step to accumulate gradients locally."
            )
        self._left[parameter] -= 1
        self._touched.add(parameter)
        if self._left[parameter] == 0:
            self._ready(parameter)

    def _ready(self, parameter):
        self._left[parameter] = 0
        group = self._group_of.get(parameter)
        if group is None:
            self._send([parameter])
        elif group.add(parameter):
            self._send(group.members)

    def _send(self, parameters):
        """Sends the gradients together, apart from sparse ones."""
        dense = [parameter for parameter in parameters if not self._send_sparse(parameter)]
        if not dense:
            return
        compressed = [self._compression.compress(self._dense_gradient(parameter)) for parameter in dense]
        tensors = [tensor for tensor, _ in compressed]
        if parameters[0] not in self._group_of:
            handle = ops.allreduce_async_(
                tensors[0],
                name=self._names[dense[0]],
                op=self._op,
                process_set=self._process_set,
                **self._factors,
            )
        else:
            handle = ops.grouped_allreduce_async_(
                tensors,
                name=self._names[parameters[0]],
                op=self._op,
                process_set=self._process_set,
                **self._factors,
            )
        collector = _Collector(handle, self._compression, dense, compressed)
        self._sent.update(dict.fromkeys(dense, collector))

    def _dense_gradient(self, parameter):
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        return parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad

    def _send_sparse(self, parameter):
        """Sends a sparse gradient as such; False when that is not what is to be done.

        A parameter that had one before and has none now takes part without entries. (One that never had any on this
        rank is taken for dense: the first step must bring it a gradient on all ranks or on none.)
        """
        gradient = parameter.grad
        if gradient is None and parameter in self._sparse:
            gradient = parameter.grad = torch.zeros_like(parameter).to_sparse(1)
        if self._sparse_as_dense or gradient is None or not gradient.is_sparse:
            return False
        self._sparse.add(parameter)
        wait = ops.sparse_allreduce_async(gradient, self._names[parameter], self._op, self._process_set)

        def collect():
            parameter.grad = wait()

        self._sent[parameter] = collect
        return True


class _Collector(object):
    """Waits for what was sent together and writes it into the parameters' gradients, once."""

    def __init__(self, handle, compression, parameters, compressed):
        self._handle = handle
        self._compression = compression
        self._parameters = parameters
        self._compressed = compressed

    def __call__(self):
        ops.synchronize(self._handle)
        for parameter, (tensor, context) in zip(self._parameters, self._compressed):
            self._give(parameter, self._compression.decompress(tensor, context))

    @staticmethod
    def _give(parameter, result):
        gradient = parameter.grad
        if gradient is None:
            parameter.grad = result
        elif gradient.is_sparse:
            parameter.grad = result.to_sparse(gradient.sparse_dim())
        elif gradient is not result:
            gradient.detach().copy_(result)
