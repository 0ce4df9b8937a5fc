import json
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import report  # noqa: E402 (it stands beside this file)

PASSES = '<testcase classname="Ring" name="Adds"/>'
FAILS = '<testcase classname="Ring" name="Wraps"><failure message="no"/></testcase>'
ERRORS = '<testcase name="Setup"><error/></testcase>'
SKIPPED = '<testcase classname="Ring" name="Cuda"><skipped message="no device"/></testcase>'
NOT_RUN = '<testcase classname="Ring" name="DISABLED_Later" status="notrun"/>'


@pytest.fixture
def say(tmp_path, capsys):
    """say(*events, exit_code=, pytest=(xml, exit code), extra=[...]) -> (exit code, printed lines)."""

    def call(*events, exit_code=0, junit=None, extra=()):
        arguments = list(extra)
        if events:
            path = tmp_path / "events.json"
            path.write_text("\n".join(json.dumps(event) for event in events))
            arguments += ["--bazel", str(path), str(exit_code)]
        if junit:
            path = tmp_path / "pytest.xml"
            path.write_text(junit[0])
            arguments += ["--pytest", str(path), str(junit[1])]
        code = report.main(arguments)
        return code, capsys.readouterr().out.splitlines()

    def ran(label, status, *cases):
        path = tmp_path / (label.replace("/", "_") + " test.xml")
        path.write_text("<testsuites><testsuite>%s</testsuite></testsuites>" % "".join(cases))
        output = {"name": "test.xml", "uri": "file://" + str(path).replace(" ", "%20")}
        return {"id": {"testResult": {"label": label}}, "testResult": {"status": status, "testActionOutput": [output]}}

    call.ran = ran
    return call


def test_cases_are_counted_not_programs(say):
    code, lines = say(say.ran("//a:t", "PASSED", PASSES, PASSES, SKIPPED, NOT_RUN), junit=("<s>%s</s>" % PASSES, 0))
    assert (code, lines[-1]) == (0, "3 passed, 0 failed, 2 skipped")
    assert "skipped: //a:t Ring.Cuda" in lines


def test_failing_cases_are_named(say):
    code, lines = say(say.ran("//a:t", "FAILED", PASSES, FAILS), exit_code=3, junit=("<s>%s</s>" % ERRORS, 1))
    assert (code, lines[-1]) == (1, "1 passed, 2 failed")
    assert "FAILED: //a:t Ring.Wraps" in lines and "FAILED: Setup" in lines


def test_a_program_that_fails_after_its_cases_passed_is_a_failure(say):
    code, lines = say(say.ran("//a:t", "FAILED", PASSES), exit_code=3)
    assert (code, lines[-1]) == (1, "1 passed, 1 failed")


@pytest.mark.parametrize("event", [
    {
        "id": {
            "targetCompleted": {
                "label": "//a:broken"
            }
        },
        "aborted": {
            "reason": "INCOMPLETE"
        }
    },
    {
        "id": {
            "targetCompleted": {
                "label": "//a:broken"
            }
        },
        "completed": {
            "failureDetail": {}
        }
    },
    {
        "id": {
            "configuredLabel": {
                "label": "//a:broken"
            }
        },
        "aborted": {
            "reason": "ANALYSIS_FAILURE"
        }
    },
    {
        "id": {
            "pattern": {
                "pattern": ["//a:broken"]
            }
        },
        "aborted": {
            "reason": "LOADING_FAILURE"
        }
    },
])
def test_what_did_not_build_is_a_failure(say, event):
    code, lines = say(say.ran("//a:t", "PASSED", PASSES), event, exit_code=1)
    assert (code, lines[-1]) == (1, "1 passed, 1 failed")
    assert any(line.startswith("FAILED: //a:broken") for line in lines)


def test_a_target_that_built_is_none(say):
    event = {"id": {"targetCompleted": {"label": "//a:t"}}, "completed": {"success": True}}
    assert say(event, say.ran("//a:t", "PASSED", PASSES)) == (0, ["1 passed, 0 failed"])


def test_a_runner_that_failed_without_saying_what_is_a_failure(say):
    started = {"id": {"started": {}}}
    assert say(started, exit_code=37)[1][-1] == "0 passed, 1 failed"
    assert say(junit=("<s>%s</s>" % PASSES, 2))[1][-1] == "1 passed, 1 failed"
    assert say(junit=("not xml",
                      124)) == (1, ["FAILED: pytest (exit code 124, it has written no results)", "0 passed, 1 failed"])
    assert say(junit=("<s>%s</s>" % PASSES, 0),
               extra=["--failed", "tools/build"]) == (1, ["FAILED: tools/build", "1 passed, 1 failed"])


def test_no_test_at_all_is_a_failure(say):
    assert say({"id": {"started": {}}}, exit_code=4, junit=("<s/>", 5)) == (1, ["no test ran", "0 passed, 0 failed"])
