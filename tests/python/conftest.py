"""Tests of the Python packages. Run them with tools/test tests/python, or with tools/env python -m pytest
tests/python."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "integration")]
