"""OpenAI's own `openai` package, which asks for base64 unless it is told otherwise, and LangChain's wrapper of it."""

import asyncio
import base64

import numpy as np
import openai
import pytest
from langchain_openai import OpenAIEmbeddings


@pytest.fixture(scope="module")
def client(url):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        yield client


def vectors_of(response):
    assert [item.index for item in response.data] == list(range(len(response.data)))
    return [item.embedding for item in response.data]


def test_embeds_one_text(client, model, native, same):
    response = client.embeddings.create(model=model, input="That is a happy person")
    same(vectors_of(response), native(["That is a happy person"]))
    assert response.model == model
    assert response.object == "list"


def test_embeds_a_list_in_its_order(client, model, sentences, native, same):
    response = client.embeddings.create(model=model, input=sentences)
    same(vectors_of(response), native(sentences))


def test_embeds_as_floats(client, model, sentences, native, same):
    response = client.embeddings.create(model=model, input=sentences, encoding_format="float")
    assert isinstance(response.data[0].embedding, list)
    same(vectors_of(response), native(sentences))


def test_leaves_base64_as_it_is_where_the_caller_asks_for_it(client, model, sentences, native, same):
    response = client.embeddings.create(model=model, input=sentences, encoding_format="base64")
    vectors = [np.frombuffer(base64.b64decode(text), dtype="<f4") for text in vectors_of(response)]
    same(vectors, native(sentences))


def test_embeds_token_ids(client, model, native, same):
    # "hello world" in the vocabulary of the model.
    ids = [7592, 2088]
    same(vectors_of(client.embeddings.create(model=model, input=ids)), native(["hello world"]))
    same(vectors_of(client.embeddings.create(model=model, input=[ids, ids])), native(["hello world"] * 2))


def test_counts_tokens(client, model):
    one = client.embeddings.create(model=model, input="hello world").usage
    # With the model's own tokens at the beginning and the end.
    assert one.prompt_tokens == one.total_tokens == 4
    many = client.embeddings.create(model=model, input=["hello world"] * 3).usage
    assert many.prompt_tokens == 12


def test_embeds_2048_texts_at_once(client, model, native, same):
    texts = [f"Sentence number {i}." for i in range(2048)]
    response = client.embeddings.create(model=model, input=texts, extra_headers={"Prefer": "wait=60"})
    vectors = vectors_of(response)
    assert len(vectors) == 2048
    checked = [0, 1, 31, 32, 1000, 2047]
    same([vectors[i] for i in checked], native([texts[i] for i in checked]))


def test_lists_models(client, model):
    listed = client.models.list()
    assert model in [each.id for each in listed]
    assert client.models.retrieve(model).object == "model"


def test_embeds_with_asyncio(url, model, sentences, native, same):
    async def embed():
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
            return await asyncio.gather(
                *(client.embeddings.create(model=model, input=text) for text in sentences)
            )

    responses = asyncio.run(embed())
    same([response.data[0].embedding for response in responses], native(sentences))


@pytest.mark.parametrize(
    "param, asked",
    [
        ("input", {"input": []}),
        ("input", {"input": ""}),
        ("input[1]", {"input": ["a", ""]}),
        ("input[1]", {"input": ["a", 7]}),
        ("input", {"input": ["a"] * 2049}),
        ("encoding_format", {"input": "a", "encoding_format": "hex"}),
        ("dimensions", {"input": "a", "dimensions": 0}),
    ],
    ids=["no texts", "an empty text", "an empty text in a list", "a number", "too many", "a format", "dimensions"],
)
def test_raises_what_is_wrong(client, model, param, asked):
    with pytest.raises(openai.BadRequestError) as refusal:
        client.embeddings.create(model=model, **asked)
    assert refusal.value.param == param
    assert refusal.value.type == "invalid_request_error"
    assert param in refusal.value.message
    assert refusal.value.request_id


def test_raises_that_a_model_is_unknown(client, model):
    with pytest.raises(openai.NotFoundError, match=model) as refusal:
        client.embeddings.create(model="nope", input="a")
    assert refusal.value.code == "model_not_found"


def test_langchain_embeds_over_it(url, model, sentences, native, same):
    embeddings = OpenAIEmbeddings(
        base_url=f"{url}/v1",
        api_key="none",
        model=model,
        # The token ids that it would otherwise send are those of OpenAI's models.
        check_embedding_ctx_length=False,
    )
    same(embeddings.embed_documents(sentences), native(sentences))
    same([embeddings.embed_query(sentences[0])], native(sentences[:1]))
    same(asyncio.run(embeddings.aembed_documents(sentences)), native(sentences))


def test_keeps_files(client, tmp_path):
    lines = b'{"custom_id": "1"}\n' * 1000
    path = tmp_path / "lines.jsonl"
    path.write_bytes(lines)
    with path.open("rb") as content:
        made = client.files.create(
            file=content, purpose="batch", expires_after={"anchor": "created_at", "seconds": 3600}
        )
    assert (made.bytes, made.filename, made.purpose) == (len(lines), "lines.jsonl", "batch")
    assert made.expires_at - made.created_at == 3600
    assert client.files.retrieve(made.id) == made
    assert made.id in [file.id for file in client.files.list(purpose="batch", limit=1)]
    assert client.files.content(made.id).read() == lines
    assert client.files.delete(made.id).deleted
    with pytest.raises(openai.NotFoundError) as refusal:
        client.files.retrieve(made.id)
    assert refusal.value.code == "file_not_found"
