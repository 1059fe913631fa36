#!/bin/sh
# The doors of Millrace with curl alone. MILLRACE_URL says where, MILLRACE_API_KEY is sent if it is set.
set -eu
url=${MILLRACE_URL:-http://127.0.0.1:8080}
model=${MILLRACE_MODEL:-all-minilm-l6-v2}

ask() {
  # --fail-with-body: an error status ends the script, and its sentence is still shown.
  curl --silent --show-error --fail-with-body ${MILLRACE_API_KEY:+-H "Authorization: Bearer $MILLRACE_API_KEY"} "$@"
  echo
}
json='Content-Type: application/json'

echo '# Is it ready? Which models are there?'
ask "$url/v2/health/ready"
ask "$url/v1/models"

echo '# The native door: one text or a list'
ask "$url/v1/models/$model/predict" -H "$json" -d '{"inputs": ["That is a happy person", "Today is a sunny day"]}'

echo '# OpenAI embeddings'
ask "$url/v1/embeddings" -H "$json" -d "{\"model\": \"$model\", \"input\": \"That is a happy person\"}"

echo '# The Open Inference Protocol'
ask "$url/v2/models/$model/infer" -H "$json" \
  -d '{"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": ["That is a happy person"]}]}'

echo '# Tensors: a model that returns its inputs'
ask "$url/v1/models/identity/predict" -H "$json" -d '{"inputs": [{"fp32": [1, 2]}, {"fp32": [3, 4]}]}'

echo '# Safe to send twice: the second time the first answer comes back'
key="example-$$-$(date +%s)"
for attempt in first second; do
  echo "$attempt:"
  ask "$url/v1/models/$model/predict" -H "$json" -H "Idempotency-Key: $key" -d '{"inputs": "Once is enough"}'
done
