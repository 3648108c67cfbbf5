"""Three warnings and a deletion, as one group that is cancelled together: reminders.py [ADDRESS] [SECONDS A DAY]. Stop it with Ctrl-C."""
import sys

import delayq

address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9278"
day = float(sys.argv[2]) if len(sys.argv) > 2 else 0.2
client = delayq.Client(address)
worker = delayq.Worker(client)


@worker.handle("space.warn")
def warn(job: delayq.Job) -> None:
    data = job.json()
    print(f"{data['space']} will be deleted in {data['left']} days", flush=True)


@worker.handle("space.delete")
def delete(job: delayq.Job) -> None:
    print(f"{job.json()['space']} is deleted", flush=True)


def expired(space: str) -> None:
    jobs = [delayq.NewJob("space.warn", f"{space}:{at}", {"space": space, "left": 30 - at}, process_in=at * day, group=space) for at in (23, 28, 29)]
    jobs.append(delayq.NewJob("space.delete", space, {"space": space}, process_in=30 * day, group=space))
    for result in client.enqueue_many(jobs):
        if isinstance(result, delayq.Error):
            raise result


expired("space-a")
expired("space-b")
print(f"space-b was renewed: {client.cancel_group('space-b')} jobs cancelled", flush=True)
worker.run()
