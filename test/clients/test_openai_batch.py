"""OpenAI's own `openai` package with files and batches: from a file of texts to their vectors."""

import json
import time

import openai
import pytest

ENDED = ("completed", "failed", "expired", "cancelled")


@pytest.fixture(scope="module")
def client(url):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        yield client


def upload(client, model, texts):
    lines = [
        {
            "custom_id": f"text-{i}",
            "method": "POST",
            "url": "/v1/embeddings",
            "body": {"model": model, "input": text},
        }
        for i, text in enumerate(texts)
    ]
    content = "".join(json.dumps(line) + "\n" for line in lines)
    return client.files.create(file=("lines.jsonl", content.encode()), purpose="batch")


def create(client, file):
    return client.batches.create(
        input_file_id=file.id, endpoint="/v1/embeddings", completion_window="24h", metadata={"run": "first"}
    )


def end(client, batch):
    while batch.status not in ENDED:
        time.sleep(0.1)
        batch = client.batches.retrieve(batch.id)
    return batch


def test_embeds_a_file_in_its_order(client, model, sentences, native, same):
    file = upload(client, model, sentences)
    assert client.files.retrieve(file.id) == file
    batch = end(client, create(client, file))
    assert batch.status == "completed"
    assert batch.request_counts.completed == batch.request_counts.total == len(sentences)
    assert batch.error_file_id is None
    assert batch.metadata == {"run": "first"}
    content = client.files.content(batch.output_file_id).text
    lines = [json.loads(line) for line in content.splitlines()]
    assert [line["custom_id"] for line in lines] == [f"text-{i}" for i in range(len(sentences))]
    same([line["response"]["body"]["data"][0]["embedding"] for line in lines], native(sentences))


def test_finds_a_line_that_failed_in_the_error_file(client, model):
    batch = end(client, create(client, upload(client, model, ["", "good"])))
    assert (batch.request_counts.completed, batch.request_counts.failed) == (1, 1)
    line = json.loads(client.files.content(batch.error_file_id).text)
    assert line["custom_id"] == "text-0"
    assert line["response"]["status_code"] == 400
    assert line["response"]["body"]["error"]["param"] == "input"


def test_lists_and_deletes(client, model):
    file = upload(client, model, ["a"])
    batch = end(client, create(client, file))
    assert file.id in [each.id for each in client.files.list()]
    assert batch.id in [each.id for each in client.batches.list(limit=1)]
    assert client.files.delete(file.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(file.id)


def test_raises_what_is_wrong(client):
    with pytest.raises(openai.NotFoundError):
        client.batches.create(input_file_id="file-nobody", endpoint="/v1/embeddings", completion_window="24h")
    with pytest.raises(openai.NotFoundError):
        client.batches.cancel("batch_nobody")
