"""Clients of text-embeddings-inference: Hugging Face's own, LangChain's and LlamaIndex's. None names a model."""

import asyncio

import numpy as np
import pytest
from huggingface_hub import AsyncInferenceClient, InferenceClient
from huggingface_hub.errors import HfHubHTTPError
from langchain_huggingface import HuggingFaceEndpointEmbeddings
from llama_index.embeddings.text_embeddings_inference import TextEmbeddingsInference


def test_hugging_face_posts_to_the_address_as_given(url, sentences, native, same):
    client = InferenceClient(model=url)
    same(client.feature_extraction(sentences), native(sentences))
    same(client.feature_extraction("x"), native(["x"]))


@pytest.mark.parametrize("path", ["/embed", "/models/{model}/embed"])
def test_hugging_face_posts_to_every_path(url, model, path, sentences, native, same):
    client = InferenceClient(model=url + path.format(model=model))
    same(client.feature_extraction(sentences), native(sentences))


def test_hugging_face_asks_for_options(url, sentences, native, same):
    client = InferenceClient(model=f"{url}/embed")
    same(client.feature_extraction(sentences, normalize=True, truncate=True), native(sentences))
    long = "a word and another " * 2000
    vectors = client.feature_extraction(long, truncate=True, truncation_direction="right")
    assert np.linalg.norm(vectors[0]) == pytest.approx(1, abs=1e-4)


def test_hugging_face_raises_what_is_wrong(url):
    client = InferenceClient(model=f"{url}/embed")
    with pytest.raises(HfHubHTTPError) as refusal:
        client.feature_extraction(["a", 3])
    assert refusal.value.response.status_code == 413
    assert "inputs[1]" in refusal.value.response.json()["error"]


def test_hugging_face_embeds_with_asyncio(url, sentences, native, same):
    async def embed():
        async with AsyncInferenceClient(model=url) as client:
            return await asyncio.gather(*(client.feature_extraction(text) for text in sentences))

    same(np.concatenate(asyncio.run(embed())), native(sentences))


def test_langchain_embeds(url, sentences, native, same):
    embeddings = HuggingFaceEndpointEmbeddings(model=url)
    same(embeddings.embed_documents(sentences), native(sentences))
    same([embeddings.embed_query(sentences[0])], native(sentences[:1]))
    same(asyncio.run(embeddings.aembed_documents(sentences)), native(sentences))


def test_llama_index_embeds(url, model, sentences, native, same):
    embeddings = TextEmbeddingsInference(model_name=model, base_url=url, embed_batch_size=4)
    right = native(sentences)
    same(embeddings.get_text_embedding_batch(sentences), right)
    same([embeddings.get_text_embedding(sentences[0])], right[:1])
    same([embeddings.get_query_embedding(sentences[1])], right[1:2])
    same(asyncio.run(embeddings.aget_text_embedding_batch(sentences)), right)
