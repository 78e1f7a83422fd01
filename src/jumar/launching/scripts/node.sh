#!/usr/bin/env bash
# Runs on each of @NODES@ node(s) of @NAME@: torchrun with @DEVICES@ process(es).
@ABOUT@
set -eu

fail() {
    printf 'node.sh: %s\n' "$1" >&2
    exit 2
}

@HERE@PYTHON=${PYTHON:-@PYTHON@}

@RENDEZVOUS@
case "$NODE_RANK" in '' | *[!0-9]*) fail "NODE_RANK '$NODE_RANK' is not a number" ;; esac
[ "$NODE_RANK" -lt @NODES@ ] || fail "NODE_RANK $NODE_RANK is too large: there are @NODES@ nodes, counted from 0"
command -v "$PYTHON" >/dev/null || fail "'$PYTHON' does not exist; set PYTHON to the interpreter"

# Operators and schedulers set these per node: RANK to the rank of the node, LOCAL_RANK to a list.
# torchrun sets them per process.
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK
@ENVIRONMENT@
export PYTHONUNBUFFERED=1
# Each line of the log names its rank; the logs of all ranks are also kept as files.
# shellcheck disable=SC2016
export TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE='[rank ${rank}] '
logs=${LOGS:-@LOGS@}
mkdir -p "$logs"

cd @FOLDER@
exec "$PYTHON" -m torch.distributed.run \
    --nnodes @NODES@ --nproc-per-node @DEVICES@ --node-rank "$NODE_RANK" \
    --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" \
    --tee 3 --log-dir "$logs/node-$NODE_RANK" \
@WORDS@
