"""The Python programs of examples/, as a reader would run them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda path: path.name)
def test_runs(program):
    ran = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, env=os.environ)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Refused" in ran.stdout or "refused" in ran.stdout
