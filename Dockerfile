# Three images: `api`, `worker-cpu` (OpenCL on the host's cores through PoCL) and `worker-gpu` (CUDA).
#
#   docker build --target api -t warpsmith-api .
#
# `--build-arg WARPSMITH_COMMIT=...` names the commit, which a context made by `make release` does by itself.
# Packages come from the hashed locks alone. Python is 3.12 in all of them, so that the CUDA image can
# use the interpreter of its distribution.
ARG PYTHON_IMAGE=python:3.12-slim-bookworm
ARG CUDA_IMAGE=nvidia/cuda:13.0.2-devel-ubuntu24.04


FROM ${PYTHON_IMAGE} AS slim
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
RUN useradd --uid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin warpsmith \
 && install -d -o warpsmith -g warpsmith /var/lib/warpsmith
ENV WARPSMITH_DATA_DIR=/var/lib/warpsmith
WORKDIR /app


FROM slim AS api-packages
COPY requirements/api.txt requirements/api.txt
RUN python -m venv /opt/venv \
 && pip install --no-cache-dir --require-hashes --only-binary=:all: -r requirements/api.txt


FROM slim AS worker-cpu-packages
COPY requirements/worker-cpu.txt requirements/worker-cpu.txt
RUN python -m venv /opt/venv \
 && pip install --no-cache-dir --require-hashes --only-binary=:all: -r requirements/worker-cpu.txt


FROM slim AS api
COPY --from=api-packages /opt/venv /opt/venv
COPY warpsmith warpsmith
COPY agents agents
COPY db db
COPY api api
COPY web web
USER warpsmith
ARG WARPSMITH_COMMIT=""
ENV WARPSMITH_COMMIT=$WARPSMITH_COMMIT
ENV WARPSMITH_HOST=0.0.0.0 \
    WARPSMITH_PORT=8765
EXPOSE 8765
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f\"http://127.0.0.1:{os.environ['WARPSMITH_PORT']}/healthz\", timeout=2)"]
ENTRYPOINT ["python", "-m"]
CMD ["warpsmith", "serve", "--no-embedded"]


FROM slim AS worker-cpu
# PoCL links every kernel with the machine's own linker, against the start files and libgcc of a compiler.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends binutils gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/*
COPY --from=worker-cpu-packages /opt/venv /opt/venv
COPY warpsmith warpsmith
COPY agents agents
COPY db db
COPY worker worker
USER warpsmith
ARG WARPSMITH_COMMIT=""
ENV WARPSMITH_COMMIT=$WARPSMITH_COMMIT
HEALTHCHECK --interval=30s --timeout=20s --start-period=60s --retries=3 CMD ["python", "-m", "worker.health"]
ENTRYPOINT ["python", "-m"]
CMD ["warpsmith", "worker"]


FROM ${CUDA_IMAGE} AS cuda-python
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    CUDA_HOME=/usr/local/cuda
# nvcc needs a host compiler: it serves sources whose headers NVRTC cannot read.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends g++ python3.12 python3.12-venv \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin warpsmith \
 && install -d -o warpsmith -g warpsmith /var/lib/warpsmith
ENV WARPSMITH_DATA_DIR=/var/lib/warpsmith
WORKDIR /app


FROM cuda-python AS worker-gpu-packages
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3.12-dev \
 && rm -rf /var/lib/apt/lists/*
COPY requirements/worker-gpu.txt requirements/dev.txt requirements/
# PyCUDA is published as source only. It is built with the locked setuptools instead of whatever an
# isolated build would fetch, and everything else may only come as a wheel.
RUN python3.12 -m venv /opt/venv \
 && sed -n '/^setuptools==/,/[^\\]$/p' requirements/dev.txt > build.txt \
 && sed -n '/^pycuda==/,/[^\\]$/p' requirements/worker-gpu.txt > pycuda.txt \
 && sed '/^pycuda==/,/[^\\]$/d' requirements/worker-gpu.txt > wheels.txt \
 && pip install --no-cache-dir --require-hashes --only-binary=:all: -r build.txt -r wheels.txt \
 && pip install --no-cache-dir --require-hashes --no-deps --no-build-isolation -r pycuda.txt


FROM cuda-python AS worker-gpu
COPY --from=worker-gpu-packages /opt/venv /opt/venv
COPY warpsmith warpsmith
COPY agents agents
COPY db db
COPY worker worker
USER warpsmith
ARG WARPSMITH_COMMIT=""
ENV WARPSMITH_COMMIT=$WARPSMITH_COMMIT
HEALTHCHECK --interval=30s --timeout=20s --start-period=60s --retries=3 CMD ["python", "-m", "worker.health"]
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
ENTRYPOINT ["python", "-m"]
CMD ["warpsmith", "worker", "--queues", "gpu"]
