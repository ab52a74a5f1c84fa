# The proxy that holds a model's answers to a policy (docs/hosts.md, "A proxy before any server"). It has no model, so
# what runs models (torch, transformers and others) is left out.
#
#   docker build -t constrained-proxy .
#   docker run -p 8000:8000 -v ./shop.lark:/policy.lark:ro constrained-proxy --upstream http://vllm:8000/v1

FROM python:3.11-slim AS built
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.11-slim
COPY --from=built /wheels /wheels
COPY constraints.txt /wheels
RUN pip install --no-cache-dir -c /wheels/constraints.txt \
        lark numpy regex starlette uvicorn httpx2 prometheus-client \
    && pip install --no-cache-dir --no-deps /wheels/*.whl \
    && useradd --system --no-create-home proxy
USER proxy
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health', timeout=3)"]
ENTRYPOINT ["constrained", "serve", "--host", "0.0.0.0", "--knowledge", "/policy.lark"]
