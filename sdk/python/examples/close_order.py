"""Close an order that is not paid in time: close_order.py [ADDRESS] [SECONDS]. Stop it with Ctrl-C."""
import sys

import delayq

address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9278"
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 5.0
client = delayq.Client(address)
worker = delayq.Worker(client)


@worker.handle("order.close")
def close(job: delayq.Job) -> None:
    print(f"order {job.json()['order']} was not paid and is closed", flush=True)


def placed(order: int) -> None:
    client.enqueue("order.close", f"order:{order}", {"order": order}, process_in=seconds)


def paid(order: int) -> None:
    print(f"order {order} is paid; its closing was {client.dequeue('order.close', f'order:{order}')}", flush=True)


for number in (1, 2, 3):
    placed(number)
paid(2)
worker.run()
