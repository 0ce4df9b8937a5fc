"""Which libraries call themselves pure (pure_cc_library, or the tag "pure"), and what in them contradicts it.

A pure library decides and computes: same input, same output. It has no clock, thread, lock, randomness, environment,
socket, log or wire format, neither in its own files nor in those that it depends on.
"""

import ast
import glob
import os
import re

FORBIDDEN = {
    r"\babsl::Now\b|\bGetCurrentTimeNanos\b": "a clock",
    r"#include\s*<(chrono|ctime|time\.h|sys/time\.h)>|\b(clock_gettime|gettimeofday)\b": "a clock",
    r"#include\s*<(thread|future|pthread\.h|stop_token|semaphore|latch|barrier)>|\bstd::(thread|jthread|async)\b":
    "threads",
    r"#include\s*<(mutex|shared_mutex|condition_variable)>|\babsl::(Mutex|Notification|CondVar)\b|base/mutex\.h":
    "a lock",
    r"#include\s*\"(absl/synchronization|absl/time/clock)[^\"]*\"": "a lock or a clock",
    r"\b(getenv|setenv|secure_getenv)\b|\benviron\b": "the environment",
    r"(?<![\w.>])s?rand\(|\bstd::random_device\b|base/random_bytes\.h|\bgetrandom\b": "randomness",
    r"\bLOG\(|base/log\.h|spdlog": "a log",
    r"\bgrpc(pp)?(::|/)|\.pb\.h\"": "the wire",
    r"#include\s*<(sys/socket\.h|sys/un\.h|netinet/[^>]*|arpa/[^>]*|netdb\.h|poll\.h|sys/epoll\.h|unistd\.h|fcntl\.h)>":
    "the system",
    r"#include\s*<(fstream|filesystem)>": "files",
}
# Libraries of the distribution that are computation only.
PURE_EXTERNAL = {"@absl", "@cli11", "@highway", "@nlohmann_json", "@yaml_cpp"}


def without_comments(source):
    """C++ source without its comments and the contents of its string literals; includes keep theirs."""

    def replace(match):
        found = match.group(0)
        return " " if found.startswith("/") else '""'

    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
    lines = token.sub(lambda m: m.group(0) if m.group(0).startswith('"') else replace(m), source).split("\n")
    return "\n".join(line if line.lstrip().startswith("#include") else token.sub(replace, line) for line in lines)


def contradictions(source):
    """What in the C++ source a pure library must not have: [(line, what)]."""
    found = []
    for number, line in enumerate(without_comments(source).split("\n"), 1):
        found += [(number, what) for pattern, what in FORBIDDEN.items() if re.search(pattern, line)]
    return found


def _strings(node, folder):
    """The strings of a list of a BUILD file: literals, sums of lists, and globs in `folder`."""
    if isinstance(node, ast.BinOp):
        return _strings(node.left, folder) + _strings(node.right, folder)
    if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "glob":
        patterns = _strings(node.args[0], folder)
        return [
            os.path.relpath(path, folder) for pattern in patterns for path in glob.glob(os.path.join(folder, pattern))
        ]
    return [item.value for item in ast.walk(node) if isinstance(item, ast.Constant) and isinstance(item.value, str)]


class Target:

    def __init__(self, label, rule, pure, files, deps):
        self.label, self.rule, self.pure, self.files, self.deps = label, rule, pure, files, deps


def absolute(label, package):
    """//package:name of a label that stands in a BUILD file of `package`."""
    if label.startswith(("@", "//")):
        return label if ":" in label or label.startswith("@") else "%s:%s" % (label, label.rsplit("/", 1)[-1])
    return "//%s:%s" % (package, label.lstrip(":"))


def targets_of(build_text, package, folder):
    """The rules of one BUILD file. Files are relative to the package."""
    found = []
    for node in ast.walk(ast.parse(build_text)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        fields = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        name = fields.get("name")
        if not isinstance(name, ast.Constant):
            continue

        def strings(field, fields=fields):
            return _strings(fields[field], folder) if field in fields else []

        pure = node.func.id == "pure_cc_library" or "pure" in strings("tags")
        found.append(
            Target(absolute(":" + name.value, package), node.func.id, pure,
                   strings("srcs") + strings("hdrs"), [absolute(dep, package) for dep in strings("deps")]))
    return found


def impure_deps(targets):
    """[(pure target, dependency)] for each direct dependency of a pure target that is not pure."""
    pure = {target.label for target in targets if target.pure}
    return [(target.label, dep) for target in targets if target.pure for dep in target.deps
            if dep not in pure and dep.split("//")[0] not in PURE_EXTERNAL]
