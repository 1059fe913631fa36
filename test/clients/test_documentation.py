"""The Python examples of the documentation, run as they stand there."""

import os
import pathlib
import re

import pytest

DOCUMENTS = pathlib.Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", ["open-inference.md", "grpc.md"])
def test_the_example_of_tritonclient_prints_a_cosine(url, capsys, document):
    (example,) = BLOCK.findall((DOCUMENTS / document).read_text())
    example = example.replace("127.0.0.1:8080", url.removeprefix("http://"))
    exec(example.replace("127.0.0.1:8001", os.environ["MILLRACE_GRPC_URL"]), {})
    shape, cosine = capsys.readouterr().out.rsplit(" ", 1)
    assert shape == "(2, 384)"
    # The known one is 0.6946; the model is in INT8.
    assert abs(float(cosine) - 0.6946) < 0.05
