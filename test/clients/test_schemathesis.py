"""The server beside its OpenAPI document: schemathesis makes requests of it, valid ones and others, and compares."""

import pathlib
import subprocess
import sys

CONFIG = pathlib.Path(__file__).with_name("schemathesis.toml")
EXAMPLES_OF_AN_OPERATION = 20


def test_the_server_answers_as_its_document_says(url, tmp_path):
    ran = subprocess.run(
        [
            *[sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG)],
            # With every check there is, but for what the configuration turns off.
            *["run", f"{url}/openapi.json", "--continue-on-failure"],
            # The same requests each time.
            *["--max-examples", str(EXAMPLES_OF_AN_OPERATION), "--seed", "1", "--generation-database", "none"],
            *["--output-sanitize", "false", "--no-color"],
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    # All of it was asked.
    assert "Tested: " in ran.stdout and "Skipped: " not in ran.stdout, ran.stdout
