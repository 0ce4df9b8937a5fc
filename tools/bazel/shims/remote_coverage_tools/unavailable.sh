#!/bin/sh
echo "bazel coverage is not set up here: its tools are not in the distribution" >&2
exit 1
