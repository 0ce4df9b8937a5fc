"""Counts what tests did, for tools/test: names what failed and prints `N passed, N failed` as the last line.

    report.py [--bazel EVENTS EXIT_CODE] [--pytest JUNIT_XML EXIT_CODE] [--failed NAME]...

EVENTS is a file of Bazel's --build_event_json_file. A target that did not build, and a program that failed although each
of its cases passed (a sanitizer's report at its end, a crash), counts as one failure. Exit code 1 when something failed
or nothing ran.
"""

import argparse
import json
import os
import sys
import urllib.parse
import xml.etree.ElementTree


class Results:

    def __init__(self):
        self.passed = 0
        self.skipped = []
        self.failed = []

    def ok(self):
        return self.passed > 0 and not self.failed

    def last_line(self):
        text = "%d passed, %d failed" % (self.passed, len(self.failed))
        return text + (", %d skipped" % len(self.skipped) if self.skipped else "")


def count_cases(path, label, results):
    """Adds the cases of a JUnit file; True when one of them failed."""
    prefix = label + " " if label else ""
    failed = False
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        name = prefix + ".".join(filter(None, (case.get("classname"), case.get("name"))))
        if case.find("failure") is not None or case.find("error") is not None:
            results.failed.append(name)
            failed = True
        elif case.find("skipped") is not None or case.get("status") == "notrun" or case.get("result") == "skipped":
            results.skipped.append(name)
        else:
            results.passed += 1
    return failed


def read_events(path):
    try:
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.strip()]
    except (OSError, ValueError):
        return []  # Bazel did not come that far; its exit code says so.


def file_of(outputs, name):
    for output in outputs:
        if output.get("name") == name and output.get("uri", "").startswith("file://"):
            return urllib.parse.unquote(output["uri"][len("file://"):])
    return None


def count_bazel(events, exit_code, results):
    broken = {}  # label -> why; a dict keeps the order
    last_attempts = {}
    for event in events:
        identity = event.get("id", {})
        if "testResult" in identity:
            key = identity["testResult"]
            last_attempts[key["label"], key.get("run", 1), key.get("shard", 1)] = event.get("testResult", {})
        elif "targetCompleted" in identity and not event.get("completed", {}).get("success"):
            broken[identity["targetCompleted"]["label"]] = "did not build"
        elif "aborted" in event and event["aborted"].get("reason") in ("LOADING_FAILURE", "ANALYSIS_FAILURE",
                                                                       "NO_ANALYZE"):
            for kind in identity.values():
                pattern = kind.get("pattern")
                name = kind.get("label") or (", ".join(pattern) if pattern else None)
                if name:
                    broken.setdefault(name, "could not be analysed")
    for (label, _, _), result in last_attempts.items():
        broken.pop(label, None)
        path = file_of(result.get("testActionOutput", []), "test.xml")
        a_case_failed = bool(path) and os.path.exists(path) and count_cases(path, label, results)
        if result.get("status") not in ("PASSED", "FLAKY") and not a_case_failed:
            results.failed.append("%s (%s; its log is above)" % (label, result.get("status", "no status").lower()))
    results.failed += ["%s (%s)" % item for item in broken.items()]
    # 0: all well; 3: a test failed; 4: there are no tests among the targets.
    if exit_code not in (0, 4) and not results.failed:
        results.failed.append("bazel (exit code %d)" % exit_code)


def count_pytest(path, exit_code, results):
    failed_before = len(results.failed)
    try:
        count_cases(path, "", results)
    except (OSError, xml.etree.ElementTree.ParseError):
        results.failed.append("pytest (exit code %d, it has written no results)" % exit_code)
    # 5: there are no tests in the paths.
    if exit_code not in (0, 5) and len(results.failed) == failed_before:
        results.failed.append("pytest (exit code %d)" % exit_code)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bazel", nargs=2, metavar=("EVENTS", "EXIT_CODE"))
    parser.add_argument("--pytest", nargs=2, metavar=("JUNIT_XML", "EXIT_CODE"))
    parser.add_argument("--failed", action="append", default=[], metavar="NAME")
    options = parser.parse_args(arguments)
    results = Results()
    results.failed += options.failed
    if options.bazel:
        count_bazel(read_events(options.bazel[0]), int(options.bazel[1]), results)
    if options.pytest:
        count_pytest(options.pytest[0], int(options.pytest[1]), results)
    for name in results.skipped:
        print("skipped: " + name)
    for name in results.failed:
        print("FAILED: " + name)
    if not results.passed and not results.failed:
        print("no test ran")
    print(results.last_line())
    return 0 if results.ok() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
