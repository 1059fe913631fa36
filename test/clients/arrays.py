"""Tensors that the tests of tritonclient send."""

import numpy as np

# One array a datatype that NumPy has, as the model of all datatypes names its inputs.
ARRAYS = {
    "fp16": np.array([[0.5, -2], [65504, 6e-8]], dtype=np.float16),
    "fp32": np.array([[0.1, -1e-30], [3.4e38, 0]], dtype=np.float32),
    "fp64": np.array([[np.pi, -1e300]] * 2, dtype=np.float64),
    "int8": np.array([[-128, 127]] * 2, dtype=np.int8),
    "int16": np.array([[-32768, 32767]] * 2, dtype=np.int16),
    "int32": np.array([[-(2**31), 2**31 - 1]] * 2, dtype=np.int32),
    "int64": np.array([[-(2**63), 2**63 - 1]] * 2, dtype=np.int64),
    "uint8": np.array([[0, 255]] * 2, dtype=np.uint8),
    "uint16": np.array([[0, 65535]] * 2, dtype=np.uint16),
    "uint32": np.array([[0, 2**32 - 1]] * 2, dtype=np.uint32),
    "uint64": np.array([[0, 2**64 - 1]] * 2, dtype=np.uint64),
    "bool": np.array([[True, False]] * 2, dtype=bool),
    "bytes": np.array([["жаба 🐸".encode(), b""], [b"a", b"bc"]], dtype=np.object_),
}
DATATYPES = {"bool": "BOOL", "bytes": "BYTES"}


def datatype_of(name):
    return DATATYPES.get(name, name.upper())


def texts_input(triton, texts):
    """The one input of a text model, by tritonclient's module for HTTP or gRPC."""
    tensor = triton.InferInput("text", [len(texts)], "BYTES")
    tensor.set_data_from_numpy(np.array([text.encode() for text in texts], dtype=np.object_))
    return tensor


def require_same_bits(returned, sent):
    assert returned.shape == sent.shape
    if sent.dtype == np.object_:
        assert returned.tolist() == sent.tolist()
    else:
        assert returned.dtype == sent.dtype
        assert returned.tobytes() == sent.tobytes()
