"""Host lists and hostfiles (cases K01 to K03, H01, H02): the usual forms work, and a mistake is shown before any host
is contacted."""

import json

import pytest

from cluster_job import worker

HOSTS = b"# the hosts of the lab\n\na slots = 2  \r\nb slots=2 # the new one\r\nc\n   \nd:3"


@pytest.fixture
def usage_error(cluster, run):
    """Runs a command line that is wrong: exit 2, one message, no output and no connection. Returns the message."""

    def check(*arguments):
        before = [cluster[name].connections() for name in cluster.names]
        code, out, err = run(*arguments)
        assert (code, out) == (2, ""), err
        assert "Traceback" not in err and len(err.strip().splitlines()) <= 4, err
        assert [cluster[name].connections() for name in cluster.names] == before
        return err

    return check


def test_k01_hosts_after_a_blank_are_a_usage_error(usage_error):
    err = usage_error("-np", "2", "-H", "a:1", "b:1", *worker("report.py"))
    assert "b:1" in err and "comma" in err and "program" in err


def test_k01_a_blank_before_a_comma_is_fine(run):
    code, out, err = run("-np", "2", "-H", "a:1 ,b:1", *worker("report.py"))
    assert code == 0, err
    assert sorted(json.loads(line.split(":", 1)[1])["host"] for line in out.splitlines()) == ["a", "b"]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.2", "a", "10.77.0.2"])
def test_k02_a_bare_name_or_address_has_one_slot(run, host):
    code, out, err = run("-np", "1", "-H", host, "sh", "-c", "echo $HOROVOD_SIZE on $HOROVOD_HOSTNAME")
    assert (code, out) == (0, "[0]<stdout>:1 on %s\n" % host), err


def test_one_machine_under_two_names_is_two_hosts_and_a_warning(run):
    script = "echo $(hostname) $HOROVOD_LOCAL_RANK $HOROVOD_CROSS_RANK"
    code, out, err = run("-np", "2", "-H", "a:1,10.77.0.1:1", "sh", "-c", script)
    assert (code, sorted(out.splitlines())) == (0, ["[0]<stdout>:a 0 0", "[1]<stdout>:a 0 1"]), err
    assert len(err.splitlines()) == 1 and "a" in err and "10.77.0.1" in err and "device" in err


def test_k02_more_processes_than_slots_says_how_to_ask_for_them(usage_error):
    err = usage_error("-np", "2", "-H", "localhost", *worker("family.sh"))
    assert "2" in err and "localhost:1" in err and "localhost:2" in err


def test_k03_a_job_on_the_ipv6_loopback_listens_nowhere_else(cluster, start):
    with start("-np", "2", "-H", "[::1]:2", *worker("ring.py")) as job:
        assert job.wait_for(r"^\[\d]<stdout>:sum 3$", 2)
        listeners = cluster["home"].listeners()
        assert listeners and {address for address, _, _ in listeners} == {"::1"}
        job.signal(2)
        assert job.wait() == 130


def test_k03_an_ipv6_address_without_brackets_is_asked_for_them(usage_error):
    err = usage_error("-np", "2", "-H", "::1:2", *worker("family.sh"))
    assert "bracket" in err and "[::1]:2" in err


def test_h01_both_dialects_of_hostfiles_with_comments_and_blanks(cluster, run, shared):
    (shared / "hosts").write_bytes(HOSTS)
    before = [cluster[name].connections() for name in cluster.names]
    arguments = ["-np", "8", "--hostfile", str(shared / "hosts"), "--dry-run"]
    code, out, err = run(*arguments, "--format=json", "true")
    assert code == 0, err
    plan = json.loads(out)
    assert [(host["name"], host["slots"]) for host in plan["hosts"]] == [("a", 2), ("b", 2), ("c", 1), ("d", 3)]
    assert [(rank["rank"], rank["host"]) for rank in plan["ranks"]] == list(enumerate("aabbcddd"))
    code, out, err = run(*arguments, "true")
    assert code == 0, err
    assert all(host in out for host in "abcd")
    assert [cluster[name].connections() for name in cluster.names] == before


def test_h01_such_a_hostfile_runs(run, shared):
    (shared / "hosts").write_bytes(HOSTS)
    code, out, err = run("-np", "8", "--hostfile", str(shared / "hosts"), "sh", "-c", "hostname")
    assert code == 0, err
    assert sorted(out.splitlines()) == ["[%d]<stdout>:%s" % place for place in enumerate("aabbcddd")]


def test_h02_a_wrong_line_is_shown_with_its_place(usage_error, shared):
    (shared / "hosts").write_text("a slots=2\nb lots=8\n")
    err = usage_error("-np", "2", "--hostfile", str(shared / "hosts"), *worker("family.sh"))
    assert str(shared / "hosts") in err and "line 2" in err and "lots=8" in err and "slots" in err


def test_h02_a_missing_hostfile_is_fatal(usage_error):
    err = usage_error("-np", "2", "--hostfile", "/nowhere/hosts", *worker("family.sh"))
    assert "/nowhere/hosts" in err and "No such file" in err
