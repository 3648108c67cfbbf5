// A worker that begins a job and never ends it; a test kills it. Prints the id of the job.
import {Client, Worker} from 'delayq';

const worker = new Worker(new Client({server: process.argv[2]!}), {lease: '1s'});
worker.handle('deadly', (job) => {
  console.log(job.id);
  return new Promise(() => {});
});
void worker.run();
