"""Marks of the table, each by a line that has no other one."""

import pytest

from jumar.failures import fault_table

PLOG = "[ERROR] HCCL(2111665,all_reduce_test):2025-10-24-11:18:29.499.235 [x.cc:908] [2111665]"
CASES = [
    ("THCudaCheck FAIL file=THCStorage.cu line=66 error=2 : out of memory", "cuda-out-of-memory"),
    ("RuntimeError: cuda runtime error (2) : out of memory at x.cu:66", "cuda-out-of-memory"),
    ("slurm_script: line 28:  8156 Killed                  python3 main.py", "process-killed"),
    ("run.sh：行 28:  8156 已杀死               python3 main.py", "process-killed"),
    ("pod worker-0 exited with code 137", "process-killed"),
    ("subprocess returned exit status 137", "process-killed"),
    ("State: Terminated, exitCode:137", "process-killed"),
    ("(raylet) Worker exit type: SYSTEM_ERROR", "ray-actor-died"),
    (
        "(raylet) A worker died or was killed while executing a task by an unexpected system error."
        " (1) The process is killed by SIGKILL by OOM killer due to high memory usage.",
        "ray-actor-died",
    ),
    ("[ERROR] 2025-03-27-11:25:51 (PID:1) UNKNOWN applicaiton exception", "npu-exit-notice"),
    ("[ERROR] 2025-03-27-11:25:51 (PID:1) UNKNOWN application exception", "npu-exit-notice"),
    ("[ERROR] 2025-03-27-11:25:51 (PID:1) ERR99999", "npu-exit-notice"),
    ("_pickle.UnpicklingError: pickle data was truncated", "pickle-cut"),
    (
        "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated"
        " abruptly while the future was running or pending.",
        "pool-worker-died",
    ),
    (
        "RuntimeError: One of the subprocesses has abruptly died during map operation.",
        "pool-worker-died",
    ),
    (
        "TerminatedWorkerError: A worker process managed by the executor was unexpectedly "
        "terminated.",
        "pool-worker-died",
    ),
    ("cxil_map: write error", "fabric-registration"),
    ("'visible_device_list' listed an invalid GPU id '6'", "tf-device-number"),
    ("InvalidArgumentError: Invalid device ordinal value (1).", "tf-device-number"),
    (f"{PLOG}[InitGroupStage][EnvConfig]value[x]", "hccl-variable-invalid"),
    (f"{PLOG}[InitGroupStage][RanktableConfig]file[x]", "hccl-rank-table-invalid"),
    (
        f"{PLOG}[InitGroupStage][RanktableCheck]devices have same superDeviceId[0x3000000]",
        "hccl-rank-table-invalid",
    ),
    (f"{PLOG}JSON parse error: [json.exception.parse_error.101]", "hccl-rank-table-invalid"),
    (f"{PLOG}[InitGroupStage][RanktableDetect]x", "hccl-cluster-detection-failed"),
    (f"{PLOG}[InitChannelStage][ParameterConflict]x", "hccl-arguments-differ"),
    (f"{PLOG}[InitChannelStage][VersionConflict]x", "hccl-versions-differ"),
    (f"{PLOG}[InitChannelStage][Timeout]x", "hccl-socket-timeout"),
    (f"{PLOG}[TaskExecStage][InvalidArgument]x", "hccl-operator-argument"),
    (
        f"{PLOG}[TaskExecStage][Timeout][Host]Task run failed, base information is streamID:[2]",
        "hccl-notify-timeout",
    ),
    (f"{PLOG}[TaskExecStage][RunFailed]x", "hccl-task-failed"),
    (f"{PLOG}[TaskExecStage][HeartbeatAbnormal]x", "hccl-heartbeat-lost"),
    (
        "rtGetDeviceIndexByPhyId execute failed, reason=[device id error][FUNC:FuncErrorReason]",
        "npu-device-id",
    ),
    ("rtSetDevice execution failed, reason=device id error[FUNC:A]", "npu-device-id"),
    ("[Modelarts Service Log]Training end with return code: 137", "process-killed"),
    ("[Modelarts Service Log]Training end with return code: 247", "process-killed"),
    ("[Modelarts Service Log]Training end with return code: 139", "process-segfault"),
    (
        "mpirun noticed that process rank 0 with PID 5997 on a exited on signal 2 (Interrupt).",
        "interrupted",
    ),
    ("^Cmpirun: killing job...", "interrupted"),
    (
        "socketPollConnect: connect returned Connection refused, exceeded error retry count (35)",
        "nccl-connection-refused",
    ),
    ("nvmlDeviceGetHandleByIndex(0) failed: Unknown Error", "cuda-lost-in-container"),
    (
        "CheckpointError: Recomputed values for the following tensors have different metadata than "
        "during the forward pass.",
        "recomputation-differs",
    ),
    (
        "CheckpointError: A different number of tensors was saved during the original forward and "
        "recomputation.",
        "recomputation-differs",
    ),
    ("srun: forcing job termination", "interrupted"),
    ("api.py:1010] Sending process 846210 closing signal SIGINT", "interrupted"),
    ("PrintCoreInfo: the error is aicore error, core id is 24", "npu-aicore-exception"),
    ("PrintCoreErrorInfo: there is an aicore error, core id is 8", "npu-aicore-exception"),
    ("PrintCoreInfo: the error is aivec error, core id is 24", "npu-vector-exception"),
    ("PrintCoreErrorInfo: there is an aivec error, core id is 8", "npu-vector-exception"),
    ("fftsplus task execute failed, err_type=4[fftsplus sdma error]", "hccl-sdma-error"),
    ("[drvStreamIdAlloc 172] ioctl failed, devId(0) tsid(0)", "npu-events-used-up"),
    ("stream.cc:184]13489 Setup:fail to alloc stream id", "npu-events-used-up"),
    ("drvEventIdAlloc failed: errorcode=17", "npu-events-used-up"),
    ("drvNotifyIdAlloc failed: errorcode=17", "npu-events-used-up"),
    ("No registered 'ResizeBicubic' OpKernel for XLA_CPU_JIT devices", "tf-operation-missing"),
    ("dlopen(mpi_lib.so, 0x0006): weak-def symbol not found '__ZN3xla'", "undefined-symbol"),
    ("ImportError: dlopen(_C.so, 2): Symbol not found: __ZN2at", "undefined-symbol"),
    ("ValueError: need at least one array to concatenate", "data-set-empty"),
    ("ImportError: Extension horovod.tensorflow has not been built: mpi_lib", "extension-build"),
    (
        "BlockingIOError: [Errno 11] Unable to synchronously open file (unable to lock file, errno "
        "= 11, error message = 'Resource temporarily unavailable')",
        "file-locked",
    ),
    ("OSError: h5py: unable to lock file, flags = 1", "file-locked"),
    ("OSError: errno = 11, error message = 'x'", "file-locked"),
    ("sqlite3.OperationalError: database is locked", "file-locked"),
    (
        "[MIE04E02041C] [endpoint] Failed to listen 172.17.0.3:40032, please check if business ip "
        "and port are legal.",
        "serving-listen-failed",
    ),
    ("[MIE04E02011C] [endpoint] Failed to start http wrapper", "serving-listen-failed"),
    ("double free or corruption (!prev)", "process-segfault"),
    ("free(): invalid pointer", "process-segfault"),
    ("malloc(): corrupted top size", "process-segfault"),
    ("munmap_chunk(): invalid pointer", "process-segfault"),
    ("corrupted size vs. prev_size", "process-segfault"),
    ("corrupted double-linked list", "process-segfault"),
    ("*** stack smashing detected ***: terminated", "process-segfault"),
    ("pure virtual method called", "process-segfault"),
    (
        "python[1234]: segfault at 0 ip 00007f12 sp 00007ffd error 4 in libtorch_cpu.so",
        "process-segfault",
    ),
    ("Bus error (core dumped)", "process-bus-error"),
    (
        "(raylet) node_manager.cc:3069: 1 Workers (tasks / actors) killed due to memory "
        "pressure (OOM), 0 Workers crashed due to other reasons at node",
        "host-out-of-memory",
    ),
    ("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", "host-out-of-memory"),
    ("=>> PBS: job killed: mem 38427376kb exceeded limit 33554432kb", "host-out-of-memory"),
    ("=>> PBS: job killed: vmem 3372163072 exceeded limit 2147483648", "host-out-of-memory"),
    ("TERM_RUNLIMIT: job killed after reaching LSF run time limit.", "out-of-time"),
    (
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
        "4770354232 bytes.",
        "cuda-out-of-memory",
    ),
    (
        "The node with node id: 1f and address: 10.0.0.1 has been marked dead because "
        "the detector has missed too many heartbeats from it.",
        "node-failed",
    ),
    ("ORTE has lost communication with a remote daemon.", "connection-broken"),
    ("=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", "mpi-ended"),
    ("/usr/bin/env: ‘python’: No such file or directory", "command-missing"),
    ("error: command '/usr/bin/gcc' failed with exit code 1", "extension-build"),
    (
        "ERROR: Could not build wheels for flash-attn, which is required to install",
        "extension-build",
    ),
    ("You are trying to access a gated repo.", "network-refused"),
    (
        "wandb.errors.UsageError: api_key not configured (no-tty). call wandb.login()",
        "network-refused",
    ),
    ("Back-off restarting failed container pytorch in pod worker-0", "process-ended"),
    ("blk_update_request: I/O error, dev sda, sector 1234", "file-system"),
    ("nfs: server 10.0.0.5 not responding, timed out", "file-system"),
    ("train.sh: line 11: syntax error near unexpected token `done'", "shell-script"),
    ("miniconda.sh: line 29: HOME: unbound variable", "shell-script"),
    ("bash: ./train.sh: /bin/bash^M: bad interpreter: No such file or directory", "shell-script"),
    ("train.sh: line 5: unexpected EOF while looking for matching `\"'", "shell-script"),
    ("train.sh: line 9: syntax error: unexpected end of file", "shell-script"),
    ("train.sh: line 5: $'\\r': command not found", "shell-script"),
    (
        "srun: error: Task launch for 23.0 failed on node hpc: Job prolog failed",
        "slurm-launch-failed",
    ),
    ("srun: error: Application launch failed: Job prolog failed", "slurm-launch-failed"),
    ("slurmstepd: error: execve(): torchrun: No such file or directory", "slurm-launch-failed"),
    (
        "slurmstepd: error: couldn't chdir to `/home/a': No such file or directory: going to /tmp",
        "slurm-launch-failed",
    ),
    (
        "srun: error: Task launch for 36.0 failed on node cn131: Job credential expired",
        "slurm-not-reached",
    ),
    (
        "gcs_rpc_client.h:179: Failed to connect to GCS at address 172.23.15.13:20000 "
        "within 5 seconds.",
        "ray-head-unreachable",
    ),
    (
        "gcs_client.cc:178: Failed to get cluster ID from GCS server: TimedOut",
        "ray-head-unreachable",
    ),
    (
        "WARNING utils.py:1397 -- Unable to connect to GCS at 10.0.53.19:49650.",
        "ray-head-unreachable",
    ),
    ("NCCL WARN Error : no algorithm/protocol available", "nccl-no-algorithm"),
    (
        "EZ9999: [PID: 696742] 2025-10-31-21:35:03.992.057 The error from device(chipId:7), "
        "serial number is 2, there is an exception of aivec error, core id is 9",
        "npu-vector-exception",
    ),
    (
        "The error from device(chipId:7), serial number is 2, there is an exception of "
        "aicore error, core id is 9",
        "npu-aicore-exception",
    ),
    (
        "The binary_info_config.json of socVersion [ascend910] does not support opType "
        "[ApplyRotaryPosEmb].",
        "aclnn-kernel-missing",
    ),
    (
        "EZ9999  [InferShape] The k-axis of a(64) and b(9216) tensors must be the "
        "same[FUNC:InferShape]",
        "shapes-differ",
    ),
    (
        "[c10d] waitForInput: socket SocketImpl(fd=111, addr=[localhost]:42404) timed "
        "out after 300000ms",
        "store-unreachable",
    ),
    ("RuntimeError: Run task for graph:kernel_graph_37 error!", "ms-launch-failed"),
    (
        "RuntimeError: NCCL error in: NCCLUtils.hpp:82, invalid argument, NCCL version 2.4.8",
        "nccl-aborted-arguments",
    ),
    (
        "RuntimeError: NCCL error in: NCCLUtils.hpp:82, invalid usage, NCCL version 2.4.8",
        "nccl-invalid-usage",
    ),
    (
        "RuntimeError: [enforce fail at inline_container.cc:222] . file not found: "
        "archive/data/9488",
        "weights-damaged",
    ),
    ("Parameter device_ip is invalid in ranktable file.", "hccl-rank-table-invalid"),
    ("/bin/bash: line 1: /usr/sbin/sshd: No such file or directory", "command-missing"),
    ("init.cc:981 NCCL WARN Invalid rank requested : 2/2", "rank-too-large"),
    ("ValueError: Invalid rank 2, rank should be in the interval [0, 1]", "rank-too-large"),
    (
        "python3: permute.cu:412: void permute_launcher(PermuteArgs): Assertion 'args.p "
        "!= nullptr' failed.",
        "native-assert",
    ),
    ("Status: Internal: out of memory", "memory-used-up"),
    (
        "Non-OK-status: GpuLaunchKernel(Fill, n, b, 0, d.stream()) status: Internal: out of memory",
        "cuda-out-of-memory",
    ),
    ("rtFftsPlusTaskLaunch, reason=[driver error:out of memory]", "npu-out-of-memory"),
    ("DevMemAllocHugePageManaged failed: device_id=0", "npu-out-of-memory"),
    ("Container rank 0 status failed cmd ['python3'] code -9 log a.0", "process-killed"),
    ("subprocess died with <Signals.SIGKILL: 9>.", "process-killed"),
    ("process 1 terminated with signal SIGKILL", "process-killed"),
    ("get error: phyid:5 realDeviceId:5 is err:0x7010003", "npu-device-id"),
    ("Host devid transform to local devid failed. (devid=65535; ret=2)", "hccl-super-device-id"),
    ("phy_id:9 get vnic ip info fail! ids[0]:0xffffffff type:1", "hccl-super-device-id"),
    ("[TsdEVENT] Event id=0x8c17a005.", "npu-hardware-event"),
    ("No res. (devId=0; res_type=1)", "npu-events-used-up"),
    ("[SqCqManage]Alloc sq cq fail", "npu-events-used-up"),
    ("reason=[driver error:no event resource]", "npu-events-used-up"),
    ("halResourceIdAlloc streamid failed", "npu-events-used-up"),
    ("devdrv_sync_msg_send, Send failed", "npu-host-link-lost"),
    ("Mbox wait fail", "npu-host-link-lost"),
    ("HDC recv msg err ret(25)", "npu-host-link-lost"),
    ("ra listen start failed ret[-98]", "hccl-port-taken"),
    ("bind and listen fail, err_no:98", "hccl-port-taken"),
    ("Some ranks tlsStatus are inconsistent", "hccl-tls-differs"),
    ("ProcessStarsSdmaErrorInfo: cqeStatus=0x3", "hccl-sdma-error"),
    ("Send timeout to tsdaemon, tsdaemon will kill aicpu-sd process", "npu-aicpu-timeout"),
    ("Aicpu engine process failed, result[1]", "npu-aicpu-exception"),
    ("event wait timeout occurred during task execution", "hccl-task-timeout"),
    ("Error 0xA0078003", "dvpp-failed"),
    ("Kernel panic - not syncing: Fatal machine check", "kernel-reports"),
    ("EXT4-fs error (device sda1)", "kernel-reports"),
    ("*** STEP 608.0 ON n CANCELLED AT 1 DUE TO JOB REQUEUE ***", "node-failed"),
    ("KeyError: 'CUDA_VISIBLE_DEVICES'", "variable-missing"),
    ("KeyError: 'ASCEND_RT_VISIBLE_DEVICES'", "variable-missing"),
    ("RuntimeError: start (0) + length (6144) exceeds dimension size (3072).", "shapes-differ"),
    (
        "RuntimeError: FSDP parameters should be materialized from meta device before training",
        "module-on-wrong-device",
    ),
    ("failed (exitcode: 124) local_rank: 0 (pid: 94384) of binary: python3", "out-of-time"),
    ("ABORT!!! Out of all 4 trainers, the trainer process with rank=[3]", "process-ended"),
    (
        "python: lib/gather.cpp:12: int at(long): Assertion `vec_[vec_idx] < size()' failed.",
        "native-assert",
    ),
    ("Floating point exception (core dumped)", "process-arithmetic"),
    ("traps: python[811] trap divide error ip:7f1 in libcublasLt.so", "process-arithmetic"),
    ("./run.sh: 行 3: 8122 浮点数例外  （核心已转储） python a.py", "process-arithmetic"),
    ("./run.sh: 行 3: 8122 段错误  （核心已转储） python a.py", "process-segfault"),
    ("traps: python[811] trap invalid opcode ip:7f1 in libtorch.so", "illegal-instruction"),
    ("Trace/breakpoint trap", "process-trap"),
    ("lightning.fabric.utilities.exceptions.SIGTERMException", "process-terminated"),
    ("Bad system call", "process-system-call"),
    ("TERM_CPULIMIT: job killed after reaching LSF CPU usage limit.", "process-cpu-time"),
    ("OSError: [Errno 27] File too large", "process-file-size"),
    ("srun: error: n1: task 0: User defined signal 2", "process-user-signal"),
    ("DataLoader worker (pid 812) is killed by signal: Aborted. ", "dataloader-crashed"),
    ("DataLoader worker (pid 812) is killed by signal: Killed. ", "dataloader-killed"),
    ("[TSDaemon] checksum aicpu package failed, ret=103", "npu-opp-unverified"),
    ("Verify Aicpu package failed, srcPath[a].", "npu-opp-unverified"),
    ("E39999 load aicpu ops package failed, device[0]", "npu-opp-unverified"),
    ("Open TsdClient failed", "npu-service-failed"),
    ("Got unsupported acl datatype: UNKNOWN", "ms-pipeline-datatype"),
    ("Blas xGEMM launch failed : a.shape=[1,2,3]", "tf-blas-launch"),
    ("Blas GEMM launch failed : a.shape=(1, 2)", "tf-blas-launch"),
    ("failed to create cublas handle: CUBLAS_STATUS_NOT_INITIALIZED", "tf-cublas"),
    ("Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR", "tf-cudnn"),
    ("Loaded runtime CuDNN library: 7.1.4", "tf-cudnn-version"),
    ("cuDNN launch failure : input shape ([1,2])", "tf-cudnn-call"),
    ("a.c:62   UCX  ERROR Failed to unpack remote key: Input/output error", "ucx-failed"),
    ("OSError: [Errno 5] Input/output error: '/data/a'", "file-system"),
    ("cuCtxGetDevice(&cu_device) is failed. ret:invalid device context", "cuda-thread-context"),
    ("ValueError: indices[0,3] = 64 is not in [0, 64)", "label-out-of-range"),
    ("CUDA_ERROR_OUT_OF_MEMORY: out of memory", "cuda-out-of-memory"),
    ("CUDA error: the launch timed out and was terminated", "cuda-launch-timeout"),
    ("CUDA error: driver shutting down", "cuda-shutting-down"),
    ("upper bound and larger bound inconsistent with step sign", "range-bounds"),
    ("RuntimeError: context has already been set", "start-method-twice"),
    ("AttributeError: module 'numpy' has no attribute 'float'.", "numpy-names"),
    ("AttributeError: `np.float_` was removed in the NumPy 2.0 release.", "numpy-names"),
    ("RuntimeError: Numpy is not available", "numpy-abi"),
    ("You cannot perform fine-tuning on purely quantized models.", "quantized-not-trainable"),
    ("CUDA Setup failed despite GPU being available.", "bitsandbytes-setup"),
    ("RendezvousConnectionError: The connection failed", "rendezvous-unreachable"),
    ("RendezvousClosedError", "rendezvous-closed"),
    ("All the data files must have the same columns, but two", "dataset-columns"),
    ("torch.OutOfMemoryError: XPU has none", "memory-used-up"),
    (
        "EE1001: [PID: 1] The argument is invalid.Reason: Set visible device failed, invalid "
        "device=3, input visible devices:3",
        "npu-device-id",
    ),
]


@pytest.mark.parametrize(("line", "expected"), CASES, ids=[line[-60:] for line, _ in CASES])
def test_line_is_this_fault(line: str, expected: str) -> None:
    fault = fault_table().fault_in(line)
    assert fault is not None
    assert fault.id == expected
