"""Millrace by Triton's clients, over HTTP and gRPC, in binary:

pip install 'tritonclient[http,grpc]' numpy; python examples/python_tritonclient.py
"""

import os
from urllib.parse import urlsplit

import numpy as np
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

URL = os.environ.get("MILLRACE_URL", "http://127.0.0.1:8080")
# Host and port of the gRPC door; empty where there is none.
GRPC_URL = os.environ.get("MILLRACE_GRPC_URL", f"{urlsplit(URL).hostname}:8001")
KEY = os.environ.get("MILLRACE_API_KEY")
MODEL = os.environ.get("MILLRACE_MODEL", "all-minilm-l6-v2")
HEADERS = {"authorization": f"Bearer {KEY}"} if KEY else None
SENTENCES = ["That is a happy person", "That is a very happy person", "Today is a sunny day"]


def embed(client, kind) -> np.ndarray:
    texts = kind.InferInput("text", [len(SENTENCES)], "BYTES")
    texts.set_data_from_numpy(np.array([text.encode() for text in SENTENCES], dtype=np.object_))
    return client.infer(MODEL, [texts], headers=HEADERS).as_numpy("embedding")


def same_back(client, kind) -> None:
    """The identity model returns its inputs: nothing may be lost on the way."""
    sent = {
        "fp32": np.array([[0.1, -1e-30], [3.4e38, 0]], dtype=np.float32),
        "int64": np.array([[2**53 + 1], [-(2**63)]], dtype=np.int64),
        "bool": np.array([[True], [False]]),
    }
    datatypes = {"fp32": "FP32", "int64": "INT64", "bool": "BOOL"}
    inputs = []
    for name, array in sent.items():
        tensor = kind.InferInput(name, array.shape, datatypes[name])
        tensor.set_data_from_numpy(array)
        inputs.append(tensor)
    outputs = [kind.InferRequestedOutput(f"{name}_out") for name in sent]
    answer = client.infer("identity", inputs, outputs=outputs, headers=HEADERS)
    for name, array in sent.items():
        assert np.array_equal(answer.as_numpy(f"{name}_out"), array), name


def show(door: str, client, kind) -> np.ndarray:
    assert client.is_server_ready(headers=HEADERS) and client.is_model_ready(MODEL, headers=HEADERS)
    vectors = embed(client, kind)
    _, near, far = vectors @ vectors[0] / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(vectors[0]))
    print(f"{door}: {near:.3f} {SENTENCES[1]}, {far:.3f} {SENTENCES[2]}")
    assert near > far, (near, far)
    same_back(client, kind)
    try:
        client.get_model_metadata("no-such-model", headers=HEADERS)
        raise AssertionError("a model that is not there has answered")
    except InferenceServerException as error:
        print(f"{door}: refused: {error.message()}")
    return vectors


parts = urlsplit(URL)
over_http = show(
    "HTTP",
    tritonclient.http.InferenceServerClient(parts.netloc + parts.path, ssl=parts.scheme == "https"),
    tritonclient.http,
)
if GRPC_URL:
    over_grpc = show("gRPC", tritonclient.grpc.InferenceServerClient(GRPC_URL), tritonclient.grpc)
    assert np.allclose(over_http, over_grpc, atol=1e-4), "the doors disagree"
