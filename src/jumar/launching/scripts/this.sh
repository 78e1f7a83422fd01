#!/usr/bin/env bash
# Starts all @NODES@ node(s) of @NAME@ on this machine; if one fails, the others are stopped, and
# start.sh exits with its status.
#
# With several machines, start one node on each instead, with the address of the first machine:
#   NODE_RANK=0 MASTER_ADDR=ADDRESS MASTER_PORT=29500 bash node.sh
set -eu

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PYTHON=${PYTHON:-@PYTHON@}
port=${MASTER_PORT:-$("$PYTHON" -c '
import socket
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    print(free.getsockname()[1])
')}

pids=()
stop() {
    trap '' INT TERM HUP
    for pid in "${pids[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
    exit "$1"
}
trap 'stop 130' INT
trap 'stop 143' TERM
trap 'stop 129' HUP

for ((node = 0; node < @NODES@; node++)); do
@VISIBLE@    # In a separate group, so that Ctrl-C reaches only this script, which stops each node once.
    set -m
    NODE_RANK=$node MASTER_ADDR=127.0.0.1 MASTER_PORT=$port bash "$here/node.sh" </dev/null &
    set +m
    pids+=("$!")
done

for ((left = @NODES@; left > 0; left--)); do
    code=0
    wait -n || code=$?
    [ "$code" = 0 ] || stop "$code"
done
