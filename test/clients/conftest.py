"""What the tests of the Python clients share: the server that scripts/test-clients.mjs has started, and the right answers."""

import json
import os
import urllib.request

import numpy as np
import pytest

SENTENCES = [
    "That is a happy person",
    "That is a happy dog",
    "That is a very happy person",
    "Today is a sunny day",
    "Жаба 🐸 прыгает",
    "x",
]
# Two ways to one answer differ by rounding alone; two sentences by far more.
SAME = 1e-5


COUNTS = {"passed": 0, "failed": 0, "skipped": 0}


def pytest_runtest_logreport(report):
    """Counts each test once; what fails around a test counts as a failure of its own."""
    if report.when == "call" or report.outcome != "passed":
        count(report.outcome)


def pytest_collectreport(report):
    if report.outcome == "failed":
        count("failed")


def count(outcome):
    """Written at once, so that the counts are there even if this process crashes."""
    COUNTS[outcome] += 1
    with open(os.environ["MILLRACE_TEST_COUNTS"], "w") as file:
        json.dump(COUNTS, file)


@pytest.fixture(scope="session")
def url():
    """`http://HOST:PORT` of the gateway."""
    return os.environ["MILLRACE_URL"]


@pytest.fixture(scope="session")
def model():
    return os.environ["MILLRACE_MODEL"]


@pytest.fixture(scope="session")
def sentences():
    return list(SENTENCES)


@pytest.fixture(scope="session")
def native(url, model):
    """Vectors of texts as the native door gives them, one text a request: float32 [N, dimensions]."""

    def embed(texts):
        return np.array([predict(url, model, text) for text in texts], dtype=np.float32)

    return embed


def predict(url, model, text):
    request = urllib.request.Request(
        f"{url}/v1/models/{model}/predict",
        data=json.dumps({"inputs": text}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)["outputs"][0]


@pytest.fixture(scope="session")
def same():
    """Fails unless vectors are those of their own texts."""

    def compare(vectors, right):
        np.testing.assert_allclose(np.asarray(vectors, dtype=np.float32), right, rtol=0, atol=SAME)

    return compare
