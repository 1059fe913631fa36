"""NVIDIA's `tritonclient[grpc]`, its defaults untouched: one call, many at once, a stream."""

import asyncio
import os
import queue

import pytest
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
from arrays import ARRAYS, datatype_of, require_same_bits, texts_input
from tritonclient.utils import InferenceServerException

ADDRESS = os.environ["MILLRACE_GRPC_URL"]


@pytest.fixture(scope="module")
def client():
    client = triton.InferenceServerClient(ADDRESS)
    yield client
    client.close()


def test_says_that_it_is_live_and_ready(client, model):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready(model)
    assert client.is_model_ready(model, "1")


def test_describes_itself_and_its_models(client, model):
    assert client.get_server_metadata().name == "millrace"
    metadata = client.get_model_metadata(model, as_json=True)
    assert metadata["name"] == model
    assert metadata["inputs"] == [{"name": "text", "datatype": "BYTES", "shape": ["-1"]}]
    assert client.get_model_config(model).config.name == model


def test_embeds_texts(client, model, sentences, native, same):
    result = client.infer(model, [texts_input(triton, sentences)], request_id='mine "1"\r\n')
    same(result.as_numpy("embedding"), native(sentences))
    assert result.get_response().id == 'mine "1"\r\n'


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
    assert [output.name for output in result.get_response().outputs] == ["int8_out"]


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_takes_compressed_messages(client, model, sentences, native, same, algorithm):
    result = client.infer(model, [texts_input(triton, sentences)], compression_algorithm=algorithm)
    same(result.as_numpy("embedding"), native(sentences))


def test_infers_asynchronously(client, model, sentences, native, same):
    answers = queue.Queue()
    for i, text in enumerate(sentences):
        client.async_infer(
            model,
            [texts_input(triton, [text])],
            callback=lambda result, error, i=i: answers.put((i, result, error)),
        )
    vectors = [None] * len(sentences)
    for _ in sentences:
        i, result, error = answers.get(timeout=30)
        assert error is None
        vectors[i] = result.as_numpy("embedding")[0]
    same(vectors, native(sentences))


def test_infers_with_asyncio(model, sentences, native, same):
    async def embed():
        async with triton_aio.InferenceServerClient(ADDRESS) as client:
            assert await client.is_server_ready()
            return await asyncio.gather(
                *(client.infer(model, [texts_input(triton_aio, [text])]) for text in sentences)
            )

    results = asyncio.run(embed())
    same([result.as_numpy("embedding")[0] for result in results], native(sentences))


def test_infers_over_a_stream_whose_bad_requests_spoil_no_other(model, sentences, native, same):
    answers = queue.Queue()
    with triton.InferenceServerClient(ADDRESS) as client:
        client.start_stream(callback=lambda result, error: answers.put((result, error)))
        for i, text in enumerate(sentences):
            client.async_stream_infer(model, [texts_input(triton, [text])], request_id=str(i))
        client.async_stream_infer("nope", [texts_input(triton, ["a"])], request_id="bad")
        vectors, errors = [None] * len(sentences), []
        for _ in range(len(sentences) + 1):
            result, error = answers.get(timeout=30)
            if error:
                errors.append(error)
            else:
                vectors[int(result.get_response().id)] = result.as_numpy("embedding")[0]
        client.stop_stream()
    same(vectors, native(sentences))
    assert len(errors) == 1 and model in str(errors[0])


def test_infers_over_a_stream_with_asyncio(model, sentences, native, same):
    async def embed():
        async def requests():
            for text in sentences:
                yield {"model_name": model, "inputs": [texts_input(triton_aio, [text])]}

        async with triton_aio.InferenceServerClient(ADDRESS) as client:
            vectors = []
            async for result, error in client.stream_infer(requests()):
                assert error is None
                vectors.append(result.as_numpy("embedding")[0])
            return vectors

    same(asyncio.run(embed()), native(sentences))


def test_lists_the_models_and_counts_what_they_did(client, model, sentences):
    index = client.get_model_repository_index().models
    assert (model, "1", "READY") in [(each.name, each.version, each.state) for each in index]
    before = inferences(client, model)
    client.infer(model, [texts_input(triton, sentences)])
    assert inferences(client, model) == before + len(sentences)


def inferences(client, model):
    return client.get_inference_statistics(model).model_stats[0].inference_count


def test_gives_up_at_the_deadline_of_its_call(client, model, sentences):
    with pytest.raises(InferenceServerException) as refusal:
        client.infer(model, [texts_input(triton, sentences * 50)], client_timeout=0.005)
    assert refusal.value.status() in ("StatusCode.DEADLINE_EXCEEDED", "StatusCode.RESOURCE_EXHAUSTED")


def test_raises_what_is_wrong_with_an_input(client, model):
    tensor = triton.InferInput("text", [2], "BYTES")
    # Declares two elements and sends one.
    tensor._raw_content = b"\x01\x00\x00\x00a"
    with pytest.raises(InferenceServerException) as refusal:
        client.infer(model, [tensor])
    assert refusal.value.status() == "StatusCode.INVALID_ARGUMENT"


def test_raises_that_a_model_is_unknown(client, model):
    with pytest.raises(InferenceServerException, match=model) as refusal:
        client.infer("nope", [texts_input(triton, ["a"])])
    assert refusal.value.status() == "StatusCode.NOT_FOUND"
