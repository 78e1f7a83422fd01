#!/usr/bin/env bash
# Starts one node of @NAME@ in a container; with several nodes, run it on each machine:
#   NODE_RANK=0 MASTER_ADDR=ADDRESS bash run.sh
# CARDS names the devices of this machine, such as 4,5,6,7; WORK names the folder to mount as /work.
set -eu

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
image=${IMAGE:-@IMAGE@}
work=${WORK:-@WORK@}

options=(--rm --network host --ipc host)
options+=(--env "NODE_RANK=${NODE_RANK:-0}" --env "MASTER_ADDR=${MASTER_ADDR:-127.0.0.1}")
options+=(--env "MASTER_PORT=${MASTER_PORT:-29500}")
options+=(--mount "type=bind,source=$here,target=/launch" --mount "type=bind,source=$work,target=/work")
@DEVICES@
exec docker run "${options[@]}" "$image" bash /launch/node.sh
