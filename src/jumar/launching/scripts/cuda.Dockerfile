# jumar on NVIDIA GPUs. Build it in this folder: docker build -t @IMAGE@ .
# With your own wheel next to this file:
#   docker build --build-arg 'JUMAR=/build/jumar-@VERSION@-py3-none-any.whl[train]' -t @IMAGE@ .
# The torch wheels contain CUDA; the machine needs the driver and NVIDIA's container toolkit.
FROM @BASE@

ARG JUMAR=jumar[train]==@VERSION@

# A compiler, for torch.compile: Triton builds its launcher with it.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*

RUN pip install --no-cache-dir torch==@TORCH@

COPY . /build/
RUN pip install --no-cache-dir "$JUMAR" torch==@TORCH@

# The driver parts that the container toolkit mounts; without `compute`, there is no libcuda.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility

WORKDIR /work
