"""A worker of asyncio that can be cancelled job by job: fetch_pages.py [ADDRESS]."""
import asyncio
import signal
import sys

import delayq


async def main(address: str) -> None:
    async with delayq.AsyncClient(address) as client:
        worker = delayq.AsyncWorker(client, concurrency=100, lease=3)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, worker.stop)

        @worker.handle("page")
        async def fetch(job: delayq.AsyncJob) -> None:
            work = asyncio.create_task(asyncio.sleep(job.json()["seconds"]))  # what takes long
            told = asyncio.create_task(job.wait_stop())
            await asyncio.wait((work, told), return_when=asyncio.FIRST_COMPLETED)
            work.cancel()
            told.cancel()
            if job.stop_reason is not None:
                raise delayq.RetryIn(60, f"gave up {job.id}: {job.stop_reason}")
            print(f"{job.id} is fetched", flush=True)

        @worker.use
        async def logged(job: delayq.AsyncJob, call: delayq.AsyncHandler) -> None:
            try:
                await call(job)
            except delayq.RetryIn as problem:
                print(problem, flush=True)
                raise

        for seconds in (0.1, 600):
            await client.enqueue("page", f"page of {seconds} s", {"seconds": seconds}, on_conflict="keep")
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(1)
        print(await client.dequeue("page", "page of 600 s"), flush=True)
        await running


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9278"))
