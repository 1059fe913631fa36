"""The Python examples of the documentation, run as they stand there."""

import pathlib
import re

DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "open-inference.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_example_of_tritonclient_prints_a_cosine(url, capsys):
    (example,) = BLOCK.findall(DOCUMENT.read_text())
    exec(example.replace("127.0.0.1:8080", url.removeprefix("http://")), {})
    shape, cosine = capsys.readouterr().out.rsplit(" ", 1)
    assert shape == "(2, 384)"
    # The known one is 0.6946; the model is in INT8.
    assert abs(float(cosine) - 0.6946) < 0.05
