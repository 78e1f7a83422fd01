#!/usr/bin/env bash
# Runs a script on one or several NPUs of this machine, with one process per device. If a process
# fails, the others are stopped, and run_npu.sh exits with its status.
#
#   bash run_npu.sh [-n DEVICES] [-d 4,5,6,7] [-s SCRIPT] [-w] [--] [arguments of the script]
#
#   -n  number of devices                         (default: @DEVICES@)
#   -d  numbers of the devices                    (default: from 0)
#   -s  script                                    (default: @ENTRY@)
#   -w  run every process in a separate folder; data paths must then be absolute
#
# PYTHON names the interpreter. If RANK_TABLE_FILE is set, it is used unchanged; RANK_START is then
# the first rank of this machine. The output of the processes is in npu_logs/.
set -eu

FRAMEWORK='@FRAMEWORK@'
devices=@DEVICES@
script=@QUOTED_ENTRY@
chosen=''
separate_folders=0

fail() {
    printf 'run_npu.sh: %s\n' "$1" >&2
    exit 2
}

while getopts ':n:d:s:wh' option; do
    case "$option" in
        h)
            sed -n 's/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed -n '2,13p'
            exit 0
            ;;
        n) devices=$OPTARG ;;
        d) chosen=$OPTARG ;;
        s) script=$OPTARG ;;
        w) separate_folders=1 ;;
        *) fail "-$OPTARG is not an option, or lacks its value" ;;
    esac
done
shift $((OPTIND - 1))

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PYTHON=${PYTHON:-python3}

[ -n "$script" ] || fail 'the script is missing: specify it with -s'
case "$script" in
    /*) ;;
    *) if [ -f "$here/$script" ]; then script=$here/$script; else script=$PWD/$script; fi ;;
esac
[ -f "$script" ] || fail "'$script' does not exist"
command -v "$PYTHON" >/dev/null || fail "'$PYTHON' does not exist; set PYTHON to the interpreter"

if [ -n "$chosen" ]; then
    IFS=',' read -r -a ids <<<"$chosen"
else
    case "$devices" in '' | *[!0-9]*) fail "-n '$devices' is not a number" ;; esac
    ids=()
    for ((id = 0; id < devices; id++)); do ids+=("$id"); done
fi
count=${#ids[@]}
[ "$count" -ge 1 ] || fail 'no device'
seen=,
for id in "${ids[@]}"; do
    case "$id" in '' | *[!0-9]*) fail "device '$id' is not a number" ;; esac
    case "$seen" in *",$id,"*) fail "device $id is listed twice" ;; esac
    seen=$seen$id,
done

@CANN@
export JOB_ID="${JOB_ID:-npu_run}"

stamp=$(date +%Y%m%d_%H%M%S)_$$
logs=$PWD/npu_logs/$stamp
mkdir -p "$logs"

first_rank=0
size=$count
if [ "$FRAMEWORK" = torch ]; then
    export MASTER_ADDR="${MASTER_ADDR:-127.0.0.1}" MASTER_PORT="${MASTER_PORT:-29500}"
    export WORLD_SIZE=$size
elif [ -n "${RANK_TABLE_FILE:-}" ]; then
    [ -f "$RANK_TABLE_FILE" ] || fail "RANK_TABLE_FILE: '$RANK_TABLE_FILE' does not exist"
    first_rank=${RANK_START:-0}
    size=$("$PYTHON" "$here/make_rank_table.py" --count "$RANK_TABLE_FILE") || exit 2
    [ $((first_rank + count)) -le "$size" ] || fail "the rank table has only $size devices"
    case "$RANK_TABLE_FILE" in /*) ;; *) export RANK_TABLE_FILE="$PWD/$RANK_TABLE_FILE" ;; esac
elif [ "$count" -gt 1 ]; then
    [ -f "$here/make_rank_table.py" ] || fail "make_rank_table.py must be next to run_npu.sh"
    list=$(IFS=,; printf '%s' "${ids[*]}")
    RANK_TABLE_FILE=$logs/rank_table.json
    "$PYTHON" "$here/make_rank_table.py" --devices "$list" --to "$RANK_TABLE_FILE" \
        --hccn "${HCCN_CONF:-/etc/hccn.conf}" || exit 2
    export RANK_TABLE_FILE
fi

# Divides the cores available to this shell equally; with fewer cores than devices, none is bound.
shares=()
if [ "$count" -gt 1 ] && command -v taskset >/dev/null; then
    while IFS= read -r share; do shares+=("$share"); done < <(
        "$PYTHON" -c '
import os, sys
cores, count = sorted(os.sched_getaffinity(0)), int(sys.argv[1])
each = len(cores) // count
for rank in range(count if each else 0):
    print(",".join(map(str, cores[rank * each : (rank + 1) * each])))
' "$count"
    )
fi

pids=()
ended=()
newest=""

# Runs one process of the script: INDEX, then the arguments of the script.
rank_process() {
    local index=$1
    shift
    local id=${ids[$index]}
    local rank=$((first_rank + index))
    local bind=()
    if [ "$separate_folders" = 1 ]; then
        mkdir -p "$logs/rank_$rank"
        cd "$logs/rank_$rank"
    fi
    if [ "${#shares[@]}" -gt "$index" ]; then bind=(taskset -c "${shares[$index]}"); fi
    if [ "$FRAMEWORK" = torch ]; then
        export RANK=$rank LOCAL_RANK=$index
    fi
    export RANK_ID=$rank RANK_SIZE=$size DEVICE_ID=$id ASCEND_DEVICE_ID=$id DEVICE_INDEX=$index
    exec ${bind[@]+"${bind[@]}"} "$PYTHON" -u "$script" "$@"
}

start() {
    local log="$logs/rank_$((first_rank + $1)).log"
    # Created at once: `tail` gives up on a log that a slow process has not created yet.
    : >"$log"
    # Every process leads a separate group, so that its loaders end with it. The mode is not kept:
    # otherwise, Ctrl-C would reach only a `sleep` of this script.
    set -m
    rank_process "$@" </dev/null >"$log" 2>&1 &
    set +m
    record_process
}

record_process() {
    ended+=(0)
    pids+=("$!")
    newest=$!
}

signal_all() {
    local index
    for index in "${!pids[@]}"; do
        if [ "${ended[$index]}" = 0 ]; then
            kill "-$1" -- "-${pids[$index]}" 2>/dev/null || true
        fi
    done
}

# Checks whether a process of the group is left: loaders outlive a leader that was killed.
alive() {
    kill -0 -- "-$1" 2>/dev/null
}

stop_all() {
    signal_all "$1"
    local tick index left
    for ((tick = 0; tick < 50; tick++)); do
        left=0
        for index in "${!pids[@]}"; do
            if alive "${pids[$index]}"; then left=1; fi
        done
        [ "$left" = 1 ] || return 0
        sleep 0.2
    done
    for index in "${!pids[@]}"; do kill -KILL -- "-${pids[$index]}" 2>/dev/null || true; done
}

# Waits for `tail`, which ends soon after the first process.
show_the_rest() {
    while kill -0 "$shown" 2>/dev/null; do sleep 0.1; done
}

interrupted() {
    trap '' INT TERM HUP
    printf '\nrun_npu.sh: stopping the processes\n' >&2
    # The signal may have arrived between the start of a process and the next line.
    if [ "${#pids[@]}" -lt "$count" ] && [ "${!-}" != "$newest" ]; then record_process; fi
    stop_all "$1"
    exit "$2"
}
trap 'interrupted INT 130' INT
trap 'interrupted TERM 143' TERM
trap 'interrupted TERM 129' HUP

for ((index = 0; index < count; index++)); do start "$index" "$@"; done
printf 'run_npu.sh: %s process(es) on device(s) %s; logs in %s\n' "$count" "${ids[*]}" "$logs"

tail -n +1 -f -s 0.2 --pid="${pids[0]}" "$logs/rank_$first_rank.log" 2>/dev/null &
shown=$!
disown "$shown"

left=$count
while [ "$left" -gt 0 ]; do
    for ((index = 0; index < count; index++)); do
        if [ "${ended[$index]}" = 1 ] || kill -0 "${pids[$index]}" 2>/dev/null; then continue; fi
        code=0
        wait "${pids[$index]}" || code=$?
        ended[index]=1
        left=$((left - 1))
        if [ "$code" != 0 ]; then
            trap '' INT TERM HUP
            rank=$((first_rank + index))
            printf 'run_npu.sh: rank %s on device %s ended with status %s; stopping the others\n' \
                "$rank" "${ids[$index]}" "$code" >&2
            stop_all TERM
            if [ "$index" != 0 ]; then tail -n 20 "$logs/rank_$rank.log" >&2; fi
            show_the_rest
            printf 'run_npu.sh: its log is %s\n' "$logs/rank_$rank.log" >&2
            exit "$code"
        fi
    done
    sleep 0.2
done
show_the_rest
