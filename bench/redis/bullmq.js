// BullMQ on the same Redis: pushes (addBulk with delays) or whole lives a second.  node bullmq.js push|life PORT JOBS
const { Queue, Worker } = require("bullmq");

const [what, port, jobs] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const connection = { host: "127.0.0.1", port, maxRetriesPerRequest: null };
const BATCH = 500;
const body = { text: "b".repeat(128) };
const bulk = (from, opts) =>
  Array.from({ length: Math.min(BATCH, jobs - from) }, () => ({ name: "job", data: body, opts }));

async function main() {
  const queue = new Queue("bench", { connection });
  await queue.waitUntilReady();
  const begin = process.hrtime.bigint();
  const seconds = () => Number(process.hrtime.bigint() - begin) / 1e9;
  if (what === "push") {
    for (let i = 0; i < jobs; i += BATCH) await queue.addBulk(bulk(i, { delay: 3600_000 + i }));
    console.log(jobs / seconds());
  } else {
    let done = 0;
    const worker = new Worker("bench", async () => {}, { connection, concurrency: 200, removeOnComplete: { count: 0 } });
    const over = new Promise((resolve) => worker.on("completed", () => ++done === jobs && resolve()));
    for (let i = 0; i < jobs; i += BATCH) await queue.addBulk(bulk(i, {}));
    await over;
    console.log(jobs / seconds());
    await worker.close();
  }
  await queue.close();
}

main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
