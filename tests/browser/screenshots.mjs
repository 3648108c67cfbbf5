// Makes the pictures of README and docs: a server with some life in it, looked at in both themes, on a screen and on a phone.
// tests/browser/run screenshots; DELAYQ_PICTURES is where to (docs/images), DELAYQ_ALL_PICTURES=1 makes one of every view.
import {mkdirSync} from 'node:fs';
import {join} from 'node:path';
import {launch, receiver, Server} from './harness.mjs';

const folder = process.env.DELAYQ_PICTURES ?? 'docs/images';
const isAll = Boolean(process.env.DELAYQ_ALL_PICTURES);
mkdirSync(folder, {recursive: true});

const server = await Server.start();
const [good, bad] = [await receiver(200), await receiver(503)];
let isOver = false;

async function fill() {
  const random = (() => {
    let state = 42;
    return () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
  })();
  const jobs = [];
  const add = (topic, count, most, shape = 1) => {
    for (let n = 0; n < count; ++n) jobs.push({topic, id: `${topic}:${10_000 + jobs.length}`, body: {order: 10_000 + n, total: Math.round(random() * 9000) / 100}, delay: `${Math.round(30 + most * random() ** shape)}s`});
  };
  add('order.close', 1300, 3500);
  add('order.close', 900, 1800, 0.5);
  add('reminder', 900, 86_000);
  add('trial.end', 700, 29 * 86_400);
  add('payment.retry', 320, 3400, 2);
  add('mail', 260, 3500);
  for (let at = 0; at < jobs.length; at += 1000) await server.ask('POST', 'v1/jobs', jobs.slice(at, at + 1000));
  await server.ask('PUT', 'v1/schedules/cleanup', {topic: 'cleanup', every: '10s', body: {}});
  await server.ask('PUT', 'v1/schedules/nightly-report', {topic: 'report', cron: '30 2 * * *', zone: 'Europe/Berlin', body: {kind: 'daily'}});
  await server.ask('PUT', 'v1/schedules/invoices', {topic: 'invoice', cron: '0 9 1 * *', zone: 'Asia/Shanghai', body: {kind: 'monthly'}, overlap: 'skip'});
  await server.ask('PUT', 'v1/schedules/weekly-digest', {topic: 'mail', cron: '0 8 * * 1', zone: 'America/New_York', body: {kind: 'digest'}});
  for (const [id, why] of [['payment.retry:7', 'card declined: insufficient funds'], ['payment.retry:8', 'card declined: insufficient funds'], ['payment.retry:9', 'gateway timeout after 10 s']]) await server.bury('payment.dead', id, why);
  for (let n = 0; n < 8; ++n) await server.push('export', {id: `export:${n}`});
  await server.ask('POST', 'v1/topics/order.close/jobs', {id: 'order.close:4711', delay: '27m', group: 'cart:815', body: {order: 4711, customer: {id: 12345678901, name: 'Ada Lovelace'}, items: [{sku: 'A-100', count: 2}, {sku: 'B-7', count: 1}], total: '129.90'}});
}

/** Producers and consumers, so that the rates are not zero. */
function live() {
  const loops = [];
  const forever = async (work) => {
    while (!isOver) await work().catch(() => undefined);
  };
  let n = 0;
  const tick = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  for (const topic of ['checkout', 'mail.send', 'search.index']) {
    loops.push(forever(async () => {
      await server.ask('POST', 'v1/jobs', Array.from({length: 3 + (++n % 5)}, () => ({topic, body: {n}})));
      await tick(40 + 30 * Math.sin(Date.now() / 4000));
    }));
    for (let consumer = 0; consumer < 2; ++consumer) {
      loops.push(forever(async () => {
        const {jobs} = await server.ask('POST', `v1/topics/${topic}/pop`, {count: 20, wait: '5s'});
        const leases = jobs.map((job) => job.lease);
        if (leases.length > 4) await server.ask('POST', 'v1/nack', {leases: leases.splice(0, 1), delay: '1s', reason: 'busy'});
        if (leases.length) await server.ask('POST', 'v1/ack', {leases});
      }));
    }
  }
  loops.push(forever(() => server.ask('POST', 'v1/topics/cleanup/pop', {wait: '60s', ack: 'auto'})));
  loops.push(forever(() => server.ask('POST', 'v1/pop', {topics: ['reminder', 'order.close'], wait: '60s'})));
  loops.push(forever(async () => {
    await server.push('hook', {callback: good.url});
    if (n % 40 === 0) await server.push('hook', {callback: bad.url});
    await tick(100);
  }));
  return loops;
}

await fill();
const loops = live();
const browser = await launch();
const named = [
  ['overview', '', {}],
  ['overview-dark', '', {colorScheme: 'dark'}],
  ['job', 'topics/order.close/jobs/order.close%3A4711', {}],
  ['dead', 'jobs?topic=payment.dead&state=dead', {}],
  ['schedule', 'schedule/new', {}],
  ['phone', '', {viewport: {width: 390, height: 844}, colorScheme: 'dark'}],
  ['overview-zh', '', {locale: 'zh-CN'}],
];
const views = [['overview', ''], ['topics', 'topics'], ['topic', 'topics/order.close'], ['jobs', 'jobs'], ['list', 'jobs?topic=order.close&state=delayed'], ['dead', 'jobs?topic=payment.dead&state=dead'], ['job', 'topics/order.close/jobs/order.close%3A4711'],
  ['push', 'push?topic=order.close'], ['schedules', 'schedules'], ['schedule', 'schedules/nightly-report'], ['schedule-new', 'schedule/new'], ['callbacks', 'callbacks'], ['consumers', 'consumers']];
const all = isAll ? ['light', 'dark'].flatMap((colorScheme) => views.flatMap(([name, view]) => [
  [`${name}-${colorScheme}`, view, {colorScheme}], [`${name}-${colorScheme}-phone`, view, {colorScheme, viewport: {width: 390, height: 844}}]])) : named;

// A page for each look, opened together: the charts of rates need half a minute to fill.
const pages = new Map();
for (const [, , options] of all) {
  const key = JSON.stringify(options);
  if (pages.has(key)) continue;
  const context = await browser.newContext({viewport: {width: 1280, height: 800}, locale: 'en-GB', timezoneId: 'Europe/Berlin', ...options});
  const page = await context.newPage();
  await page.goto(server.url);
  pages.set(key, page);
}
await new Promise((resolve) => setTimeout(resolve, Number(process.env.DELAYQ_PICTURE_SECONDS ?? 45) * 1000));
for (const [name, view, options] of all) {
  const page = pages.get(JSON.stringify(options));
  await page.goto(`${server.url}#/${view}`);
  await page.locator('h1').waitFor();
  if (view === '') await page.locator('.future canvas').waitFor();
  await new Promise((resolve) => setTimeout(resolve, 1200));
  await page.screenshot({path: join(folder, `${name}.png`), animations: 'disabled'});
}
isOver = true;
await browser.close();
await server.kill();
await Promise.all(loops);
await server.stop();
good.stop();
bad.stop();
