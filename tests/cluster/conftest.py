"""One cluster for all tests of this folder: four hosts with sshd, a, b, c, d, and one to launch from, home.

Run them with tools/test tests/cluster, or, as root, with tools/env /usr/bin/python3 -m pytest tests/cluster.
"""

import os
import pathlib
import sys
import tempfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "integration")]

from cluster import Cluster, why_not  # noqa: E402 (they stand beside this file)
from cluster_job import ClusterJob, assert_nothing_left, everything_ends  # noqa: E402

SLACK = 5.0  # seconds, on a busy machine


@pytest.fixture(scope="session")
def shared_cluster():
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster):
    """The cluster as it began. Whatever of a job is left on a host after the test is killed and is a failure."""
    yield shared_cluster
    try:
        assert_nothing_left(shared_cluster.hosts.values(), SLACK)
    finally:
        everything_ends(shared_cluster.hosts.values())
        shared_cluster.restore_ssh()


@pytest.fixture
def shared(cluster):
    """A folder that all hosts see under the same path."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="shared-", dir=cluster.folder))
    folder.chmod(0o755)
    return folder


@pytest.fixture
def start(cluster):
    """Starts a launcher on the host `home`, or `on` another."""

    def begin(*arguments, on="home", **options):
        return ClusterJob(cluster[on], *arguments, **options)

    return begin


@pytest.fixture
def run(start):
    """Runs a job to its end: (exit code, standard output, standard error)."""

    def to_the_end(*arguments, **options):
        with start(*arguments, **options) as job:
            code = job.wait()
            return code, job.stdout, job.stderr

    return to_the_end
