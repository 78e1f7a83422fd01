# jumar on Ascend NPUs (@CHIP@). Build it in this folder: docker build -t @IMAGE@ .
# With your own wheel next to this file:
#   docker build --build-arg 'JUMAR=/build/jumar-@VERSION@-py3-none-any.whl[train]' -t @IMAGE@ .
# CANN @CANN@, torch @TORCH@ and torch-npu @ADAPTER@ match: another CANN needs another pair.
# The driver of the machine is mounted when the container starts.
FROM quay.io/ascend/cann:@TAG@-@CHIP@-ubuntu22.04-py@PYTHON@

ARG JUMAR=jumar[train]==@VERSION@

# torch-npu is built against the C++ interface of this torch, without CUDA.
RUN pip install --no-cache-dir torch==@TORCH@ --index-url https://download.pytorch.org/whl/cpu \
    && pip install --no-cache-dir pyyaml setuptools torch==@TORCH@ torch-npu==@ADAPTER@

COPY . /build/
RUN pip install --no-cache-dir "$JUMAR" torch==@TORCH@ torch-npu==@ADAPTER@

WORKDIR /work
