"""Millrace by the official openai package: pip install openai numpy; python examples/python_openai.py"""

import os

import numpy as np
import openai

URL = os.environ.get("MILLRACE_URL", "http://127.0.0.1:8080")
MODEL = os.environ.get("MILLRACE_MODEL", "all-minilm-l6-v2")
# The package insists on a key; without keys in the gateway, any will do.
client = openai.OpenAI(base_url=f"{URL}/v1", api_key=os.environ.get("MILLRACE_API_KEY", "none"))

sentences = ["That is a happy person", "That is a very happy person", "Today is a sunny day"]
answer = client.embeddings.create(model=MODEL, input=sentences)
vectors = np.array([item.embedding for item in answer.data], dtype=np.float32)
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
_, near, far = vectors @ vectors[0]
print(f"{near:.3f}  {sentences[0]} / {sentences[1]}")
print(f"{far:.3f}  {sentences[0]} / {sentences[2]}")
print(f"{answer.usage.prompt_tokens} tokens")

# Known of this model; another one has its own.
if MODEL == "all-minilm-l6-v2":
    assert abs(near - 0.943) < 0.03 and abs(far - 0.257) < 0.03, (near, far)
assert near > far, (near, far)
assert MODEL in [model.id for model in client.models.list()]

try:
    client.embeddings.create(model=MODEL, input=["fine", ""])
    raise AssertionError("an empty text was taken")
except openai.BadRequestError as error:
    print(f"Refused: {error.status_code}, {error.param}")
