"""DistributedOptimizer: an optimizer that steps with the gradients of all ranks."""

import contextlib
import warnings

from farandole import _later, basics
from farandole.process_sets import global_process_set, number_of
from farandole.torch import ops
from farandole.torch.compression import Compression
from farandole.torch._gradients import GradientExchange
from farandole.torch._names import parameter_names


class _Distributed(object):
    """What DistributedOptimizer puts before the optimizer's own class."""

    def synchronize(self):
        """Waits until all gradients are those of all ranks. Parameters that got none take part with zeros, and a short
        last accumulation is sent as it is. step() does this; call it to work on the gradients before the step."""
        self._exchange.synchronize(self.param_groups)
        self._synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self):
        """Inside, step() does not call synchronize(), since that was done already."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure=None):
        """Synchronizes and steps. A closure is called by the step, and its gradients are synchronized, too."""
        if self._should_synchronize:
            if self._synchronized:
                warnings.warn(
                    "optimizer.step() called without optimizer.skip_synchronize() context after "
                    "optimizer.synchronize(). This can cause training slowdown. You may want to consider using "
                    "optimizer.skip_synchronize() context if you use optimizer.synchronize() in your code.",
                    stacklevel=2,
                )
            if closure is None or self._exchange.busy():
                self.synchronize()
        self._synchronized = False
        if closure is None:
            return super().step()
        return super().step(self._synchronized_closure(closure))

    def _synchronized_closure(self, closure):
        def call():
            loss = closure()
            self._exchange.synchronize(self.param_groups)
            return loss

        return call

    def zero_grad(self, *args, **kwargs):
        """As the optimizer's own. AssertionError: gradients are on their way."""
        if self._exchange.busy():
            raise AssertionError(
                "optimizer.zero_grad() was called after loss.backward() but before optimizer.step() or "
                "optimizer.synchronize(). This is prohibited as it can cause a race condition."
            )
        return super().zero_grad(*args, **kwargs)

    def set_backward_passes_per_step(self, passes):
        """How many backward passes are accumulated before gradients are sent."""
        self._exchange.set_passes(passes)

    def load_state_dict(self, *args, **kwargs):
        """As the optimizer's own; gradients on their way are dropped."""
        self._exchange.drop()
        self._synchronized = False
        return super().load_state_dict(*args, **kwargs)


# torch wraps step() of an optimizer's class for its profiler and step hooks. Our step() calls one that is wrapped.
_Distributed.step.hooked = True


def DistributedOptimizer(
    optimizer,
    named_parameters=None,
    compression=Compression.none,
    backward_passes_per_step=1,
    op=ops.Average,
    gradient_predivide_factor=1.0,
    num_groups=0,
    groups=None,
    sparse_as_dense=False,
    process_set=global_process_set,
):
    """`optimizer` with another class: one derived from its own, whose step() uses the gradients of all ranks.

    Gradients are sent while backward() still computes others. Parameters, options, state and schedulers are shared
    with the optimizer that was given. Several of these may live in one process, with equal names of parameters too,
    when all ranks make them in one order.

    named_parameters: pairs (name, parameter), such as model.named_parameters(); names must be the same on all ranks.
    compression: how gradients travel.
    backward_passes_per_step: so many are accumulated before gradients are sent. Nothing is divided by it.
    op: Average, Sum, Min, Max or Product.
    gradient_predivide_factor: for Average; gradients are divided by it before they are added up, multiplied after.
    groups: a number of parts of about equal length, or a list of lists of parameters, whose gradients are sent
        together. Then this call is one that all ranks make together. num_groups: the old form of the number.
    sparse_as_dense: sparse gradients are sent as dense ones.

    process_set: whose ranks average their gradients; other ranks train alone.

    ValueError: an argument that makes no sense. NotImplementedError: Adasum with more than one rank.
    """
    number_of(process_set)
    if isinstance(optimizer, _Distributed):
        raise ValueError("the optimizer is a DistributedOptimizer already")
    op = ops.reduce_op(op, None)
    if op == ops.Adasum and basics.size() > 1:
        raise _later.error("a DistributedOptimizer with op=hvd.Adasum (hvd.allreduce has it)")
    if gradient_predivide_factor != 1.0 and op != ops.Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")
    if num_groups:
        warnings.warn(
            "Parameter `num_groups` has been replaced by `groups` and will be removed",
            DeprecationWarning,
            stacklevel=2,
        )
        groups = num_groups if groups is None else groups
    names = parameter_names(optimizer.param_groups, named_parameters)
    exchange = GradientExchange(
        names, compression, backward_passes_per_step, op, gradient_predivide_factor, groups, sparse_as_dense, process_set
    )

    distributed = type(
        type(optimizer).__name__, (_Distributed, type(optimizer)), {"__doc__": type(optimizer).__doc__}
    )
    result = distributed.__new__(distributed)
    result.__dict__.update(optimizer.__dict__)
    result.__dict__.pop("step", None)  # a scheduler that was made for the given optimizer counts that one's steps
    result._exchange = exchange
    result._synchronized = False
    result._should_synchronize = True
    return result
