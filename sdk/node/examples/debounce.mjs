// Rebuilds an index once, some time after the last of many changes: the same id again replaces the job.
//   node examples/debounce.mjs
import {Client, Worker} from 'delayq';

const client = new Client();
for (let change = 1; change <= 20; ++change) await client.enqueue('index.rebuild', 'products', {change}, {processIn: '500ms'});

const worker = new Worker(client);
worker.handle('index.rebuild', (job) => {
  console.log(`rebuilt ${job.id} after change ${job.json().change}`);
  void worker.stop();
});
await worker.run();
// prints: rebuilt products after change 20
