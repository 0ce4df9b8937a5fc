"""Names, numbers, handles and arguments: what holds without a native library, which a stand-in replaces."""

import signal
import threading

import pytest
import torch
from fake_library import FAILED_PRECONDITION, FakeLibrary

import farandole
import horovod
import horovod.torch as hvd
from farandole import _library, basics
from farandole.torch import _groups, _names


@pytest.fixture
def library(monkeypatch):
    """A stand-in, initialised."""
    fake = FakeLibrary()
    monkeypatch.setattr(_library, "_library", fake)
    monkeypatch.setattr(basics, "_pid", None)
    hvd.init()
    yield fake
    hvd.shutdown()


@pytest.fixture
def outside(monkeypatch):
    """No library is loaded."""
    monkeypatch.setattr(_library, "_library", None)


def test_before_init_everything_says_to_call_init(outside):
    assert not hvd.is_initialized()
    hvd.shutdown()
    for call in (
        hvd.rank,
        hvd.size,
        hvd.local_rank,
        hvd.local_size,
        hvd.cross_rank,
        hvd.cross_size,
        hvd.is_homogeneous,
        hvd.barrier,
        lambda: hvd.allreduce(torch.ones(1)),
        lambda: hvd.broadcast_object(1),
        lambda: hvd.DistributedOptimizer(torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)),
    ):
        with pytest.raises(ValueError, match="Horovod has not been initialized; use hvd.init()."):
            call()


def test_a_library_that_cannot_be_loaded_gives_the_loaders_words(outside, monkeypatch, tmp_path):
    broken = tmp_path / "libfarandole.so"
    broken.write_text("no library")
    monkeypatch.setenv("FARANDOLE_LIBRARY", str(broken))
    with pytest.raises(
        ImportError, match="cannot be loaded: .*%s.*(invalid ELF header|file too short)" % broken.name
    ):
        hvd.init()


def test_unnamed_operations_are_numbered_and_rejected_ones_count(library):
    hvd.allreduce(torch.ones(1))
    with pytest.raises(ValueError, match="torch.ComplexFloatTensor is not supported"):
        hvd.allreduce(torch.ones(1, dtype=torch.complex64))
    hvd.allgather(torch.ones(1))
    hvd.barrier()
    hvd.broadcast(torch.ones(1), 0)
    hvd.grouped_allreduce([torch.ones(1), torch.ones(2)])
    assert library.names == [
        "allreduce.noname.1",
        "allgather.noname.3",
        "barrier.noname",
        "broadcast.noname.5",
        "grouped_allreduce.noname.6_1of2",
        "grouped_allreduce.noname.6_2of2",
    ]


def test_numbers_begin_with_one_after_each_init(library):
    assert hvd.allreduce_async(torch.ones(1)) == 1
    assert hvd.allreduce_async(torch.ones(1)) == 2
    hvd.shutdown()
    hvd.init()
    assert hvd.allreduce_async(torch.ones(1)) == 1
    assert list(name for name, _, _ in library.open.values()) == ["allreduce.noname.1"]  # the others were given back


def test_named_operations(library):
    hvd.allreduce(torch.ones(1), name="a")
    hvd.allreduce_(torch.ones(1), name="b")
    hvd.grouped_allreduce_([torch.ones(1), torch.ones(1)], name="c")
    hvd.allgather(torch.ones(1), name="d")
    hvd.broadcast_(torch.ones(1), 0, name="e")
    hvd.grouped_allgather([torch.ones(1)], name="f")
    assert library.names == [
        "allreduce.a",
        "allreduce.b",
        "grouped_allreduce.c_1of2",
        "grouped_allreduce.c_2of2",
        "allgather.d",
        "broadcast.e",
        "grouped_allgather.f_1of1",
    ]


def test_a_gradient_is_named_after_its_operation(library):
    tensor = torch.ones(2, requires_grad=True)
    hvd.allreduce(hvd.allreduce(tensor, name="a")).sum().backward()
    assert library.names == [
        "allreduce.a",
        "allreduce.noname.2",
        "allreduce.noname.2.gradient",
        "allreduce.a.gradient",
    ]


def test_poll_and_synchronize(library):
    library.finished = False
    handle = hvd.allreduce_async(torch.ones(1))
    assert not hvd.poll(handle)
    library.finished = True
    assert hvd.poll(handle)
    assert hvd.synchronize(handle).tolist() == [1.0]
    assert hvd.synchronize(handle) is None
    with pytest.raises(ValueError, match="Handle %d was not created or has been cleared." % handle):
        hvd.poll(handle)
    assert library.open == {}


def test_a_failed_operation_is_given_back_and_the_next_one_works(library):
    library.errors["allreduce.bad"] = (FAILED_PRECONDITION, "ranks 0 and 1 disagree")
    handle = hvd.allreduce_async(torch.ones(1), name="bad")
    with pytest.raises(hvd.HorovodInternalError, match="ranks 0 and 1 disagree"):
        hvd.synchronize(handle)
    assert library.open == {}
    assert hvd.allreduce(torch.ones(1), name="good").tolist() == [1.0]


def test_a_signal_is_acted_upon_while_waiting_and_the_operation_can_be_waited_for_again(library):
    class Rang(Exception):
        pass

    def ring(*_):
        raise Rang

    before = signal.signal(signal.SIGALRM, ring)
    try:
        library.finished = False
        handle = hvd.allreduce_async(torch.ones(1))
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(Rang):
            hvd.synchronize(handle)
    finally:
        signal.signal(signal.SIGALRM, before)
    library.finished = True
    assert hvd.synchronize(handle).tolist() == [1.0]


def test_numbers_are_unique_among_threads(library):
    handles = []

    def work():
        for _ in range(200):
            handles.append(hvd.allreduce_async(torch.ones(1)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(handles) == list(range(1, 801))


def test_average_is_the_old_form_of_op(library):
    with pytest.raises(ValueError, match="The op parameter supersedes average"):
        hvd.allreduce(torch.ones(1), average=True, op=hvd.Sum)
    with pytest.warns(DeprecationWarning):
        hvd.allreduce(torch.ones(1), average=False)
    with pytest.raises(ValueError, match="op must be one of"):
        hvd.allreduce(torch.ones(1), op=17)
    assert (hvd.Average, hvd.Sum, hvd.Adasum, hvd.Min, hvd.Max, hvd.Product) == (0, 1, 2, 3, 4, 5)


def test_what_cannot_be_an_operand(library):
    with pytest.raises(ValueError, match="scalar"):
        hvd.allgather(torch.tensor(1.0))
    with pytest.raises(ValueError, match="not supported"):
        hvd.broadcast(torch.eye(2).to_sparse(), 0)
    with pytest.raises(ValueError, match="a tensor is expected, not list"):
        hvd.allreduce_async([1.0])
    for params in (torch.ones(1), "text", 3, [("a", "b")], [3]):
        with pytest.raises(ValueError, match="invalid params of type"):
            hvd.broadcast_parameters(params, 0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: hvd.SyncBatchNorm(3),
        lambda: hvd.init(comm=[0]),
        lambda: hvd.elastic.run(lambda state: None),
        lambda: hvd.elastic.TorchState(),
        lambda: hvd.elastic.ElasticSampler([]),
        lambda: hvd.start_timeline("file"),
        lambda: horovod.run(lambda: None, min_num_proc=1),
    ],
)
def test_what_comes_later_says_so(library, call):
    with pytest.raises(NotImplementedError, match="comes with a later one"):
        call()


def test_process_sets_that_are_not_registered(library, monkeypatch):
    monkeypatch.delenv("HOROVOD_DYNAMIC_PROCESS_SETS", raising=False)
    with pytest.raises(ValueError, match="is not registered"):
        hvd.allreduce(torch.ones(1), process_set=hvd.ProcessSet([0]))
    with pytest.raises(ValueError, match="Set HOROVOD_DYNAMIC_PROCESS_SETS=1"):
        hvd.add_process_set([0])
    assert hvd.remove_process_set(hvd.ProcessSet([0])) is False
    assert hvd.remove_process_set(hvd.global_process_set) is False


def test_the_global_process_set(library):
    assert hvd.global_process_set.process_set_id == 0
    assert hvd.global_process_set.ranks == [0]
    assert (hvd.global_process_set.size(), hvd.global_process_set.rank()) == (1, 0)
    assert str(hvd.ProcessSet([2, 0])) == "ProcessSet(process_set_id=None, ranks=[0, 2], mpi_comm=None)"


def test_names_of_an_optimizers_parameters():
    a, b, c = (torch.ones(1, requires_grad=True) for _ in range(3))
    groups = [{"params": [a, b]}, {"params": [c]}]
    assert list(_names.parameter_names(groups, None).values()) == ["noname.0.0", "noname.0.1", "noname.1.0"]
    named = _names.parameter_names(groups, iter([("x", c), ("y", a), ("z", b)]))
    assert [named[p] for p in (a, b, c)] == ["y", "z", "x"]
    with pytest.raises(ValueError, match="Found duplicates: x"):
        _names.parameter_names(groups, [("x", a), ("x", b), ("y", c)])
    with pytest.raises(ValueError, match="were not named"):
        _names.parameter_names(groups, [("x", a), ("y", b)])
    with pytest.raises(ValueError, match="sequence of tuples"):
        _names.parameter_names(groups, [a, b, c])


def test_an_optimizer_with_names_of_an_earlier_one_has_a_scope(library):
    assert [_names.scope(names) for names in (["a", "b"], ["c"], ["b", "d"], ["b", "d"])] == [
        "",
        "",
        "optimizer2.",
        "optimizer3.",
    ]
    hvd.shutdown()
    hvd.init()
    assert _names.scope(["a"]) == ""


def test_groups_of_parameters(library):
    parameters = [torch.ones(1, requires_grad=True) for _ in range(5)]
    names = {parameter: str(i) for i, parameter in enumerate(parameters)}
    made, group_of = _groups.assign(2, names, True, hvd.global_process_set)
    assert [[names[p] for p in group.members] for group in made] == [["0", "1", "2"], ["3", "4"]]
    assert group_of[parameters[4]] is made[1]
    made, group_of = _groups.assign([[parameters[3], parameters[1]]], names, True, hvd.global_process_set)
    assert [[names[p] for p in group.members] for group in made] == [["1", "3"]]
    assert parameters[0] not in group_of
    for wrong, text in (
        (0, "non-negative integer"),
        ("x", "non-negative integer"),
        ([["x"]], "torch.Tensor"),
        ([[parameters[0]], [parameters[0]]], "only appear once"),
        ([[torch.ones(1)]], "not a parameter"),
    ):
        with pytest.raises(ValueError, match=text):
            _groups.assign(wrong, names, True, hvd.global_process_set)


def test_versions():
    assert horovod.__version__ == "0.28.1+farandole" + farandole.__version__
