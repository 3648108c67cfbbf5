// Warns three times before a space is deleted on day 30, unless the user renews it.
//   node examples/expiry.mjs
import {Client, Worker} from 'delayq';

const DAY = 100; // milliseconds, to see it happen; 86_400_000 in real life
const client = new Client();

async function expire(space) {
  const group = `space:${space}`;
  await client.enqueueMany([
    ...[23, 28, 29].map((day) => ({topic: 'space.warn', id: `${space}:${day}`, payload: {space, left: 30 - day}, processIn: day * DAY, group})),
    {topic: 'space.delete', id: space, payload: {space}, processIn: 30 * DAY, group},
  ]);
}

const worker = new Worker(client);
worker.handle('space.warn', (job) => console.log(`${job.json().space}: ${job.json().left} days left`));
worker.handle('space.delete', (job) => {
  console.log(`${job.json().space}: deleted`);
  void worker.stop();
});

await expire('photos');
await expire('letters');
console.log(`letters was renewed: ${await client.cancelGroup('space:letters')} jobs cancelled`);
await worker.run();
// prints: letters was renewed: 4 jobs cancelled
// prints: photos: 7 days left
// prints: photos: 2 days left
// prints: photos: 1 days left
// prints: photos: deleted
