"""The examples in Python, run as a reader runs them: each ends with an error where an answer is wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("python_openai.py", ["tokens", "Refused: 400, input[1]"]),
        ("python_tritonclient.py", ["HTTP: 0.9", "gRPC: 0.9", "gRPC: refused: "]),
    ],
)
def test_an_example_runs_and_says_what_it_shows(name, says):
    ran = subprocess.run(
        [sys.executable, EXAMPLES / name], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for words in says:
        assert words in ran.stdout
