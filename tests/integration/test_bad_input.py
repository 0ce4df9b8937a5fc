"""Bad input gets a clear error and exit 2, before anything is started."""

import pytest

from job import run


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["-np", "2"], ["program"]),
        (["true"], ["-np"]),
        (["-np", "0", "true"], ["-np", "0"]),
        (["-np", "-3", "true"], ["-np", "-3"]),
        (["-np", "two", "true"], ["-np", "two"]),
        (["-np", "5", "-H", "localhost:2", "true"], ["5", "2", "localhost:2"]),
        (["-np", "2", "-H", "localhost:x", "true"], ["column 11", "localhost:x"]),
        (["-np", "2", "-H", "localhost:1,,127.0.0.1:1", "true"], ["column 13"]),
        (["-np", "2", "-H", "::1:2", "true"], ["bracket"]),
        (["-np", "2", "-H", "localhost:1", "127.0.0.1:1", "true"], ["127.0.0.1:1", "comma"]),
        (["-np", "2", "--hostfile", "/nowhere/hosts", "true"], ["/nowhere/hosts", "No such file"]),
        (["-np", "1", "--cache-capacity", "-1", "true"], ["--cache-capacity", "-1"]),
        (["-np", "1", "--log-level", "LOUD", "true"], ["--log-level", "LOUD"]),
        (["-np", "1", "--port-range", "9-1", "true"], ["--port-range", "9-1"]),
        (["-np", "2", "--min-np", "1", "true"], ["elastic"]),
        (["-np", "1", "--no-such-option", "true"], ["--no-such-option"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_usage_errors(arguments, words, tmp_path):
    started = tmp_path / "started"
    code, out, err = run(*arguments[:-1], *(["touch", str(started)] if arguments[-1] == "true" else [arguments[-1]]))
    assert code == 2
    assert out == ""
    for word in words:
        assert word in err
    assert not started.exists()


def test_a_malformed_hostfile_names_file_line_and_text(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost slots=1\n127.0.0.1 lots=8\n")
    code, _, err = run("-np", "2", "--hostfile", str(hosts), "true")
    assert code == 2
    assert str(hosts) in err and "2" in err and "lots=8" in err


def test_a_program_that_cannot_be_executed(tmp_path):
    code, _, err = run("-np", "2", "-H", "localhost:2", str(tmp_path / "missing"))
    assert code == 127
    assert "localhost" in err and str(tmp_path / "missing") in err and "No such file or directory" in err


def test_a_program_without_execute_permission(tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    code, _, err = run("-np", "1", str(script))
    assert code == 127
    assert str(script) in err and "Permission denied" in err
