# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of bench/processes.py: one process of a DistributedDataParallel training over gloo.

    processes_peer.py ARCH BATCH STEPS THREADS LAYOUT RANK SIZE PORT

Prints one line of JSON with the time of each step. The images are in memory, so nothing is read.
"""
import ctypes
import json
import os
import signal
import sys
import time

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel
from train_peer import Training


def main():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # with its parent
    arch, batch, steps, threads, layout, rank, size, port = sys.argv[1:]
    torch.set_num_threads(int(threads))
    os.environ.update(GLOO_SOCKET_IFNAME="lo")
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=int(rank), world_size=int(size))
    training = Training(arch, int(batch), "f32", layout)
    training.network = DistributedDataParallel(training.network)
    times = []
    for _ in range(int(steps)):
        begin = time.monotonic()
        training.step()
        times.append(time.monotonic() - begin)
    print(json.dumps({"version": torch.__version__, "seconds": times}), flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
