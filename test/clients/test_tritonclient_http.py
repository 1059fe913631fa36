"""NVIDIA's `tritonclient[http]`, its defaults untouched: tensors are binary both ways."""

import asyncio

import numpy as np
import pytest
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from arrays import ARRAYS, datatype_of, require_same_bits, texts_input
from tritonclient.utils import InferenceServerException


@pytest.fixture(scope="module")
def client(url):
    client = triton.InferenceServerClient(url.removeprefix("http://"), concurrency=4)
    yield client
    client.close()


def test_says_that_it_is_live_and_ready(client, model):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready(model)
    assert client.is_model_ready(model, "1")
    assert not client.is_model_ready("nope")


def test_describes_itself_and_its_models(client, model):
    assert "binary_tensor_data" in client.get_server_metadata()["extensions"]
    metadata = client.get_model_metadata(model)
    assert metadata["name"] == model
    assert metadata["inputs"] == [{"name": "text", "datatype": "BYTES", "shape": [-1]}]
    assert [output["name"] for output in metadata["outputs"]] == ["embedding"]


def test_embeds_texts(client, model, sentences, native, same):
    result = client.infer(model, [texts_input(triton, sentences)], request_id="mine-1")
    same(result.as_numpy("embedding"), native(sentences))
    assert result.get_response()["id"] == "mine-1"
    assert "binary_data_size" in result.get_output("embedding")["parameters"]


def test_embeds_texts_with_tensors_in_json(client, model, sentences, native, same):
    tensor = triton.InferInput("text", [len(sentences)], "BYTES")
    tensor.set_data_from_numpy(np.array(sentences, dtype=np.object_), binary_data=False)
    output = triton.InferRequestedOutput("embedding", binary_data=False)
    result = client.infer(model, [tensor], outputs=[output])
    same(result.as_numpy("embedding"), native(sentences))


@pytest.mark.parametrize("name", ARRAYS)
def test_returns_every_datatype_bit_by_bit(client, name):
    array = ARRAYS[name]
    tensor = triton.InferInput(name, array.shape, datatype_of(name))
    tensor.set_data_from_numpy(array)
    returned = client.infer("datatypes", [tensor]).as_numpy(f"{name}_out")
    require_same_bits(returned, array)


def test_returns_the_outputs_asked_for(client):
    tensors = []
    for name in ("fp32", "int8"):
        tensors.append(triton.InferInput(name, ARRAYS[name].shape, datatype_of(name)))
        tensors[-1].set_data_from_numpy(ARRAYS[name])
    result = client.infer("datatypes", tensors, outputs=[triton.InferRequestedOutput("int8_out")])
    assert [output["name"] for output in result.get_response()["outputs"]] == ["int8_out"]


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_sends_and_takes_compressed_bodies(client, model, sentences, native, same, algorithm):
    result = client.infer(
        model,
        [texts_input(triton, sentences)],
        request_compression_algorithm=algorithm,
        response_compression_algorithm=algorithm,
    )
    same(result.as_numpy("embedding"), native(sentences))


def test_infers_asynchronously(client, model, sentences, native, same):
    pending = [client.async_infer(model, [texts_input(triton, [text])]) for text in sentences]
    vectors = [each.get_result().as_numpy("embedding")[0] for each in pending]
    same(vectors, native(sentences))


def test_infers_with_asyncio(url, model, sentences, native, same):
    async def embed():
        async with triton_aio.InferenceServerClient(url.removeprefix("http://")) as client:
            assert await client.is_server_ready()
            return await asyncio.gather(
                *(client.infer(model, [texts_input(triton_aio, [text])]) for text in sentences)
            )

    results = asyncio.run(embed())
    same([result.as_numpy("embedding")[0] for result in results], native(sentences))


def test_lists_the_models_and_counts_what_they_did(client, model, sentences):
    index = client.get_model_repository_index()
    assert {"name": model, "version": "1", "state": "READY", "reason": ""} in index
    before = inferences(client, model)
    client.infer(model, [texts_input(triton, sentences)])
    assert inferences(client, model) == before + len(sentences)


def inferences(client, model):
    return client.get_inference_statistics(model)["model_stats"][0]["inference_count"]


def test_says_that_models_cannot_be_loaded(client, model):
    for move in (client.load_model, client.unload_model):
        with pytest.raises(InferenceServerException) as refusal:
            move(model)
        assert refusal.value.status() == "501"


def test_gives_up_at_the_timeout_it_was_told(client, model, sentences):
    with pytest.raises(InferenceServerException) as refusal:
        client.infer(model, [texts_input(triton, sentences * 50)], timeout=1)
    assert refusal.value.status() in ("429", "504")


@pytest.mark.parametrize(
    "tensor",
    [
        triton.InferInput("txet", [1], "BYTES"),
        triton.InferInput("text", [2], "BYTES"),
        triton.InferInput("text", [1], "FP32"),
    ],
    ids=["an unknown input", "another shape", "another datatype"],
)
def test_raises_what_is_wrong_with_an_input(client, model, tensor):
    if tensor.datatype() == "BYTES" and tensor.shape() == [2]:
        # Declares two elements and sends one.
        tensor._raw_data = b"\x01\x00\x00\x00a"
        tensor._parameters["binary_data_size"] = 5
    elif tensor.datatype() == "BYTES":
        tensor.set_data_from_numpy(np.array([b"a"], dtype=np.object_))
    else:
        tensor.set_data_from_numpy(np.array([1], dtype=np.float32))
    with pytest.raises(InferenceServerException, match=r"inputs\[0\]") as refusal:
        client.infer(model, [tensor])
    assert refusal.value.status() == "400"


def test_raises_that_a_model_is_unknown(client, model):
    with pytest.raises(InferenceServerException, match=model) as refusal:
        client.infer("nope", [texts_input(triton, ["a"])])
    assert refusal.value.status() == "404"
