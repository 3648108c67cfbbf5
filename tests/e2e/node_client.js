// What a program with node-redis does: connect, push in a pipeline, pop, ack, wait for a job, get an error.
const { createClient } = require('redis');

async function main(port) {
  const open = () => createClient({ socket: { host: '127.0.0.1', port, reconnectStrategy: false } });
  const client = open();
  const other = client.duplicate();
  await client.connect();
  await other.connect();
  const said = { pong: await client.ping() };
  const pushes = [];
  for (let i = 0; i < 200; ++i) pushes.push(client.sendCommand(['PUSH', 't', '0', `body ${i}`, 'ID', `${i}`]));
  said.ids = new Set(await Promise.all(pushes)).size;
  const jobs = await client.sendCommand(['POP', 't', 'COUNT', '500']);
  said.bodies = jobs.filter((job, i) => job[3] === `body ${i}`).length;
  said.acked = await client.sendCommand(['ACK', ...jobs.map((job) => job[0])]);
  const waiting = other.sendCommand(['POP', 'u', 'WAIT', '30s']);
  await client.sendCommand(['PUSH', 'u', '20ms', 'late']);
  said.waited = (await waiting)[0][3];
  said.refused = await client.sendCommand(['PUSH', 't', 'soon', 'x']).catch((error) => error.message.split(' ')[0]);
  await client.quit();
  await other.quit();
  console.log(JSON.stringify(said));
}

main(Number(process.argv[2])).catch((error) => {
  console.error(error);
  process.exit(1);
});
