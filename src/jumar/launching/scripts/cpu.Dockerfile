# jumar on CPUs. Build it in this folder: docker build -t @IMAGE@ .
# With your own wheel next to this file:
#   docker build --build-arg 'JUMAR=/build/jumar-@VERSION@-py3-none-any.whl[train]' -t @IMAGE@ .
FROM @BASE@

ARG JUMAR=jumar[train]==@VERSION@

# A compiler, for torch.compile on CPUs.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*

# The CPU build is a tenth of the size of the CUDA build.
RUN pip install --no-cache-dir torch==@TORCH@ --index-url https://download.pytorch.org/whl/cpu

COPY . /build/
RUN pip install --no-cache-dir "$JUMAR" torch==@TORCH@

WORKDIR /work
