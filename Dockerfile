# phrasetool with everything that pruning, annotating, training and tuning need, on processors alone.
FROM python:3.12-slim
RUN apt-get update && apt-get install -y --no-install-recommends gcc g++ libc6-dev make && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/phrasetool
COPY . .
# With --build-arg PIP_EXTRA_INDEX_URL=... pip takes the CPU build of PyTorch, which is several gigabytes smaller.
ARG PIP_EXTRA_INDEX_URL
RUN pip install --no-cache-dir --constraint constraints.txt '.[align,parquet,train,tune]' && phrasetool compile --quiet
WORKDIR /data
ENTRYPOINT ["phrasetool"]
