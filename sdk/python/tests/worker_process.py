"""A worker in a process of its own, for tests that kill it: worker_process.py ADDRESS TOPIC FILE SECONDS. Each run of the handler
appends `begin ID ATTEMPT` to the file, takes so long, and appends `end ID ATTEMPT`."""
from __future__ import annotations

import os
import pathlib
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import delayq  # noqa: E402

address, topic, path, seconds = sys.argv[1:]
worker = delayq.Worker(address, concurrency=4, lease=1.5, wait=1)
out = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


@worker.handle(topic)
def handle(job: delayq.Job) -> None:
    os.write(out, f"begin {job.id} {job.attempt}\n".encode())
    time.sleep(float(seconds))
    os.write(out, f"end {job.id} {job.attempt}\n".encode())


worker.run()
