// The payloads of the topics of a program, checked by the compiler.
import {Client, Worker, type EnqueueOptions, type Job} from 'delayq';

interface Topics {
  'mail.send': {to: string; text: string};
  'order.close': {order: number};
}

const client = new Client();

function enqueue<T extends keyof Topics>(topic: T, id: string, payload: Topics[T], options?: EnqueueOptions): Promise<string> {
  return client.enqueue(topic, id, payload, options);
}

function handle<T extends keyof Topics>(worker: Worker, topic: T, handler: (payload: Topics[T], job: Job) => unknown): void {
  worker.handle(topic, (job) => handler(job.json<Topics[T]>(), job));
}

async function main(): Promise<void> {
  const worker = new Worker(client);
  handle(worker, 'mail.send', ({to}) => console.log(`mail to ${to}`));
  handle(worker, 'order.close', ({order}) => {
    console.log(`order ${order.toFixed(0)} closed`);
    void worker.stop();
  });
  await enqueue('order.close', 'order:1', {order: 1}, {processIn: '200ms'});
  await worker.run();
}

void main();
// prints: order 1 closed
