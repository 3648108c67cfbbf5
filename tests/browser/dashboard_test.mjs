// The dashboard in a real browser, over the real server: what people do with it, in the order in which they would.
import assert from 'node:assert/strict';
import {execFile} from 'node:child_process';
import {after, before, describe, test} from 'node:test';
import {promisify} from 'node:util';
import {axe, deadline, launch, proxyBelow, receiver, Server, until} from './harness.mjs';

const run = promisify(execFile);
let browser;
let server;
before(async () => {
  browser = await launch();
  server = await Server.start();
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

/** A page of its own for a test; what the browser complains of makes the test fail. `mayFail`: requests that are expected to. */
async function open(t, path = '', {url = server.url, mayFail, ...options} = {}) {
  const context = await browser.newContext({viewport: {width: 1280, height: 900}, locale: 'en-GB', timezoneId: 'Europe/Berlin', ...options});
  context.setDefaultTimeout(deadline);
  const page = await context.newPage();
  const complaints = [];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && !mayFail?.test(message.text()) && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  t.after(async () => {
    await context.close();
    assert.deepEqual(complaints, [], 'the console has errors');
  });
  await page.goto(`${url}#/${path}`);
  return page;
}
const row = (page, kind, name) => page.locator(`tr[data-${kind}="${name}"]`);
const see = (page, text) => page.getByText(text).first().waitFor();
const button = (page, name) => page.getByRole('button', {name, exact: true});
const link = (page, name) => page.getByRole('link', {name, exact: true});

describe('topics', () => {
  test('an empty server tells the first command to type', async (t) => {
    const page = await open(t);
    await see(page, 'No jobs yet');
    await see(page, /redis-cli -p \d+ PUSH order 30s/);
  });

  test('a topic is seen, and what changes is seen at once', async (t) => {
    await server.push('order', {id: 'order:1', delay: '1h'});
    const page = await open(t, 'topics');
    const delayed = row(page, 'topic', 'order').locator('td').nth(1);
    await delayed.getByText('1', {exact: true}).waitFor();
    await server.push('order', {id: 'order:2', delay: '1h'});
    await delayed.getByText('2', {exact: true}).waitFor();
    await see(page, 'live');
  });

  test('pause and resume', async (t) => {
    const page = await open(t, 'topics');
    await button(page, 'Pause order').click();
    await row(page, 'topic', 'order').getByText('paused').waitFor();
    assert.equal((await server.ask('GET', 'v1/topics/order')).settings.paused, true);
    await button(page, 'Resume order').click();
    await button(page, 'Pause order').waitFor();
    assert.equal((await server.ask('GET', 'v1/topics/order')).settings.paused, false);
  });

  test('settings are changed, refused with the reason, and set back', async (t) => {
    const page = await open(t, 'topics/order');
    await page.getByLabel('attempts').fill('3');
    await page.getByLabel('backoff').fill('1m');
    await page.getByLabel('rate', {exact: true}).fill('100/1s');
    await see(page, 'Changed: attempts, backoff, rate');
    await button(page, 'Save').click();
    await see(page, 'The settings are stored.');
    const {settings} = await server.ask('GET', 'v1/topics/order');
    assert.deepEqual([settings.attempts, settings.backoff, settings.rate], [3, '1m', '100/1s']);
    await button(page, 'Back to the defaults').click();
    await see(page, 'The defaults apply again.');
    assert.equal((await server.ask('GET', 'v1/topics/order')).settings.attempts, 16);
  });

  test('who is told of the dead, and header lines that are never shown', async (t) => {
    const page = await open(t, 'topics/noticed');
    await page.getByLabel('on_dead').fill('dead.letters');
    await page.getByLabel('delivery').selectOption('webhook');
    await page.getByLabel('callback', {exact: true}).fill('http://127.0.0.1:1/hook');
    await page.getByLabel('callback_headers').fill('Authorization: Bearer hush\nX-Tenant: acme');
    await button(page, 'Save').click();
    await see(page, 'The settings are stored.');
    await see(page, '2 are set, and never shown.');
    const {settings} = await server.ask('GET', 'v1/topics/noticed');
    assert.deepEqual([settings.on_dead, settings.callback_header_count], ['dead.letters', 2]);
    assert.equal((await page.content()).includes('hush'), false);
    await button(page, 'Back to the defaults').click();
    await see(page, 'The defaults apply again.');
    const after = (await server.ask('GET', 'v1/topics/noticed')).settings;
    assert.deepEqual([after.on_dead, after.delivery, after.callback_header_count], ['', 'pull', 2]);
  });

  test('the table is sorted by each column, and has a line of what happened', async (t) => {
    for (const n of [1, 2, 3]) await server.push('sorted.a', {id: `s${n}`, delay: '1h'});
    await server.push('sorted.b', {delay: '1h'});
    const page = await open(t, 'topics?filter=sorted.');
    await row(page, 'topic', 'sorted.b').locator('svg.spark').waitFor();
    const names = () => page.locator('tr[data-topic] td.name').allTextContents();
    assert.deepEqual(await names(), ['sorted.a', 'sorted.b']);
    await button(page, 'topic ↑').or(page.getByRole('button', {name: 'topic'})).first().click();
    await until('the other way round', async () => (await names())[0] === 'sorted.b');
    await page.getByRole('columnheader', {name: 'delayed'}).getByRole('button').click();
    await until('the most first', async () => (await names())[0] === 'sorted.a');
    await page.locator('th[aria-sort=descending]', {hasText: 'delayed'}).waitFor();
  });

  test('a wrong setting is refused with the reason', async (t) => {
    const page = await open(t, 'topics/order', {mayFail: /400/});
    await page.getByLabel('lease').fill('soon');
    await button(page, 'Save').click();
    await see(page, /lease: /);
  });

  test('a purge asks first, and names what it deletes', async (t) => {
    for (const id of ['a', 'b']) await server.push('waste', {id, delay: '1h'});
    await server.push('waste', {id: 'c'});
    const page = await open(t, 'topics/waste');
    await button(page, 'Purge…').click();
    await see(page, 'This deletes 2 delayed, 1 ready.');
    const confirm = button(page, 'Delete 3 jobs');
    assert.equal(await confirm.isDisabled(), true);
    await page.getByLabel('Type waste to confirm').fill('waste');
    await confirm.click();
    await see(page, '3 jobs are gone.');
    await button(page, 'Forget').click();
    await see(page, 'waste is forgotten.');
  });
});

describe('jobs', () => {
  test('a job is found by its id alone, and inspected as it was pushed', async (t) => {
    await server.ask('POST', 'v1/topics/order/jobs', '{"id": "order:77", "delay": "2h", "group": "cart:7", "body": {"number": 12345678901234567890, "text": "a\\nb"}}');
    const page = await open(t, 'jobs');
    await page.getByLabel('Find a job by its id, in all topics').fill('order:77');
    await button(page, 'Find').click();
    await page.getByRole('heading', {name: 'order:77'}).waitFor();
    const body = page.locator('pre.body');
    assert.equal(await body.textContent(), '{\n  "number": 12345678901234567890,\n  "text": "a\\nb"\n}');
    await button(page, 'Hex').click();
    await page.locator('pre[data-view=hex]').waitFor();
    assert.match(await body.textContent(), /^00000000 {2}7b 22 6e 75 6d 62 65 72 {2}22 3a .*\|?\{"number"/);
    await see(page, 'cart:7');
    await see(page, /in 1h 59m|in 2h/);
  });

  test('an id that nobody has', async (t) => {
    const page = await open(t, 'jobs', {mayFail: /404/});
    await page.getByLabel('Find a job by its id, in all topics').fill('nothing');
    await button(page, 'Find').click();
    await see(page, 'No topic has a job with the id nothing.');
  });

  test('the list is filtered by id and due time, and paged', async (t) => {
    await server.ask('POST', 'v1/jobs', Array.from({length: 120}, (_, n) => ({topic: 'many', id: `m${String(n).padStart(3, '0')}`, body: n, delay: n < 60 ? '1h' : '1d'})));
    const page = await open(t, 'jobs?topic=many&state=delayed', {mayFail: /400/});
    const rows = page.locator('tr[data-job]');
    await rows.nth(49).waitFor();
    assert.equal(await rows.count(), 50);
    await button(page, 'Next page').click();
    await see(page, 'Page 2');
    await button(page, 'Next page').click();
    await until('the last page', async () => (await rows.count()) === 20);
    await page.getByLabel('The id begins with').fill('m11');
    await until('ten jobs', async () => (await rows.count()) === 10);
    await page.getByLabel('The id begins with').fill('');
    await button(page, 'Due between…').click();
    await page.getByLabel('Due before').fill(new Date(Date.now() + 26 * 3_600_000).toISOString().slice(0, 16));
    await page.getByLabel('Due after').fill(new Date(Date.now() + 12 * 3_600_000).toISOString().slice(0, 16));
    await until('those of tomorrow', async () => (await rows.count()) === 50 && (await rows.first().getAttribute('data-job')) >= 'm060');
    await button(page, 'Next page').click();
    await until('the rest of them', async () => (await rows.count()) === 10 && (await rows.first().getAttribute('data-job')) >= 'm110');
    await page.getByLabel('Due before').fill(new Date(Date.now() + 6 * 3_600_000).toISOString().slice(0, 16));
    await see(page, 'due_before must be after due_after');
    await page.getByLabel('Due after').fill('');
    await until('those of today', async () => (await rows.count()) === 50 && (await rows.last().getAttribute('data-job')) < 'm060');
  });

  test('an id that is not among those that were looked through has a link of its own', async (t) => {
    const page = await open(t, 'jobs?topic=many&state=ready&prefix=m007');
    await link(page, 'The job whose id is exactly this').click();
    await page.getByRole('heading', {name: 'm007'}).waitFor();
  });

  test('all that is known of a job: headers, and an error with its lines', async (t) => {
    await server.push('facts', {id: 'f', headers: {tenant: 'acme'}});
    const {jobs} = await server.ask('POST', 'v1/topics/facts/pop', {});
    await server.ask('POST', 'v1/nack', {leases: [jobs[0].lease], delay: '1h', reason: 'first line\nsecond line'});
    const page = await open(t, 'topics/facts/jobs/f');
    await see(page, 'tenant: acme');
    await see(page, 'attempt 1 / 16');
    assert.match(await page.locator('.alert').innerText(), /first line\nsecond line/);
  });

  test('cancel', async (t) => {
    const page = await open(t, 'topics/order/jobs/order%3A1', {mayFail: /404/});
    await button(page, 'Cancel…').click();
    await button(page, 'Cancel the job').click();
    await see(page, 'order:1 is cancelled.');
    await see(page, 'There is no such job');
  });

  test('the selected are cancelled, after a question', async (t) => {
    for (const id of ['c1', 'c2', 'c3']) await server.push('unwanted', {id, delay: '1h'});
    const page = await open(t, 'jobs?topic=unwanted&state=delayed');
    await page.getByLabel('Select c1').check();
    await page.getByLabel('Select c3').check();
    await button(page, 'Cancel 2 selected…').click();
    await page.getByRole('dialog').getByRole('button', {name: 'Cancel 2 jobs'}).click();
    await see(page, '2 jobs are cancelled.');
    await row(page, 'job', 'c1').waitFor({state: 'detached'});
    assert.equal((await server.counts('unwanted')).delayed, 1);
  });

  test('reschedule with the date picker, then run now', async (t) => {
    const page = await open(t, 'topics/order/jobs/order%3A2');
    await button(page, 'Reschedule…').click();
    await page.getByLabel('Due at (Europe/Berlin)').fill('2031-02-03T09:30');
    await button(page, 'Move').click();
    await see(page, /^Due in/);
    assert.equal((await server.ask('GET', 'v1/topics/order/jobs/order:2')).due_at, '2031-02-03T08:30:00.000Z');
    await button(page, 'Run now').click();
    await page.locator('.head .badge', {hasText: 'ready'}).waitFor();
    assert.equal((await server.ask('GET', 'v1/topics/order/jobs/order:2')).state, 'ready');
  });

  test('the dead of one error are redriven, and no others', async (t) => {
    await server.ask('POST', 'v1/topics/order/pop', {ack: 'auto', count: 10});
    for (const [id, why] of [['d1', 'the bank says no'], ['d2', 'timeout'], ['d3', 'the bank says no']]) await server.bury('pay', id, why);
    const page = await open(t);
    await link(page, 'pay: 3 more jobs have died within a minute · 3 dead').or(page.getByRole('link', {name: 'pay: 3 dead jobs'})).click();
    await button(page, 'the bank says no').first().click();
    await until('two of them', async () => (await page.locator('tr[data-job]').count()) === 2);
    await button(page, 'Redrive all with this error…').click();
    await button(page, 'Redrive').click();
    await see(page, '2 jobs are ready again.');
    assert.deepEqual(await server.counts('pay'), {delayed: 0, ready: 2, reserved: 0, done: 0, dead: 1});
  });

  test('of a traceback its last line is the error', async (t) => {
    const trace = (error) => `Traceback (most recent call last):\n  File "worker.py", line 12, in run\n${error}`;
    for (const [id, error] of [['p1', 'ValueError: x'], ['p2', 'KeyError: y'], ['p3', 'ValueError: x']]) await server.bury('python', id, trace(error));
    const page = await open(t, 'jobs?topic=python&state=dead');
    await row(page, 'job', 'p1').getByRole('button').click();
    await until('two of them', async () => (await page.locator('tr[data-job]').count()) === 2);
    assert.equal(await page.getByLabel('The error contains').inputValue(), 'ValueError: x');
  });

  test('the selected are redriven, and one alone', async (t) => {
    for (const id of ['e1', 'e2', 'e3']) await server.bury('parcel', id, 'no');
    const page = await open(t, 'jobs?topic=parcel&state=dead');
    await page.getByLabel('Select e1').check();
    await page.getByLabel('Select e3').check();
    await button(page, 'Redrive 2 selected').click();
    await see(page, '2 jobs are ready again.');
    await row(page, 'job', 'e1').waitFor({state: 'detached'});
    await link(page, 'e2').click();
    await see(page, 'no');
    await button(page, 'Redrive').click();
    await page.locator('.head .badge', {hasText: 'ready'}).waitFor();
    assert.equal((await server.counts('parcel')).dead, 0);
  });

  test('a job is pushed from the form, which shows the same request for the shell', async (t) => {
    const page = await open(t, 'push?topic=mail');
    await page.getByLabel('id (generated without one)').fill("it's");
    await page.getByLabel('body').fill('{"n": 1}');
    await page.getByLabel('delay', {exact: true}).fill('90m');
    const [curl, redis] = await page.locator('.code pre').allTextContents();
    assert.match(redis, /^redis-cli -p \d+ PUSH mail 90m '\{"n": 1\}' ID 'it'\\''s'$/);
    await run('sh', ['-c', `${curl} --fail --silent`]);
    assert.equal((await server.ask('GET', "v1/topics/mail/jobs/it's")).state, 'delayed');
    await page.getByLabel('id (generated without one)').fill('form:1');
    await button(page, 'Push').click();
    await page.getByRole('heading', {name: 'form:1'}).waitFor();
    assert.deepEqual((await server.ask('GET', 'v1/topics/mail/jobs/form:1')).body, {n: 1});
  });

  test('what is wrong with a push is said beside the field', async (t) => {
    const page = await open(t, 'push?topic=mail', {mayFail: /400/});
    await page.getByLabel('delay', {exact: true}).fill('soon');
    await button(page, 'Push').click();
    await page.locator('.field.wrong', {hasText: 'delay'}).waitFor();
  });
});

test('the life of a schedule', async (t) => {
  const page = await open(t, 'schedules', {mayFail: /400/});
  await see(page, 'No schedules yet');
  await link(page, 'New schedule').click();
  await page.getByLabel('name', {exact: true}).fill('nightly');
  await page.getByLabel('topic', {exact: true}).fill('report');
  await page.getByLabel('cron', {exact: true}).fill('0 2 * *');
  await page.locator('.alert').waitFor();
  await page.getByLabel('cron', {exact: true}).fill('30 2 * * *');
  await page.getByLabel('time zone').fill('Asia/Shanghai');
  await page.locator('[data-preview] li', {hasText: '02:30:00 Asia/Shanghai'}).first().waitFor();
  assert.equal(await page.locator('[data-preview] li').count(), 5);
  await button(page, 'Set the schedule').click();
  await page.getByRole('heading', {name: 'nightly'}).waitFor();
  await button(page, 'Run now').click();
  await see(page, /nightly#.* is made\./);
  assert.equal((await server.counts('report')).ready, 1);
  await page.locator('.head').getByRole('button', {name: 'Pause'}).click();
  await page.locator('.badge', {hasText: 'paused'}).waitFor();
  await link(page, 'Change…').click();
  await button(page, 'interval').click();
  await page.getByLabel('every', {exact: true}).fill('6h');
  await button(page, 'Save').click();
  await see(page, 'every 6h');
  assert.equal((await server.ask('GET', 'v1/schedules/nightly')).state, 'paused');
  await page.locator('.head').getByRole('button', {name: 'Resume'}).click();
  await page.locator('.badge', {hasText: 'active'}).waitFor();
  await until('five occurrences of an interval', async () => (await page.locator('[data-preview] li').count()) === 5);
  await button(page, 'Remove…').click();
  await button(page, 'Remove the schedule').click();
  await see(page, 'No schedules yet');
});

test('a change of a schedule keeps what the form does not show', async (t) => {
  await server.ask('PUT', 'v1/schedules/tagged', {topic: 'report', body: 1, every: '1h', headers: {tenant: 'acme'}, group: 'g', attempts: 2, jitter: '1m'});
  await server.ask('PUT', 'v1/schedules/secret', {topic: 'report', body: 1, every: '1h', callback: 'http://127.0.0.1:1/hook', callback_headers: ['Authorization: Bearer hush']});
  const page = await open(t, 'schedules/tagged');
  await see(page, 'tenant: acme');
  await link(page, 'Change…').click();
  await page.getByLabel('every', {exact: true}).fill('2h');
  await button(page, 'Save').click();
  await see(page, 'every 2h');
  const {headers, group, attempts, jitter} = await server.ask('GET', 'v1/schedules/tagged');
  assert.deepEqual({headers, group, attempts, jitter}, {headers: {tenant: 'acme'}, group: 'g', attempts: 2, jitter: '1m'});
  await page.goto(`${server.url}#/schedules/secret`);
  await see(page, 'It has headers of a callback, which are never shown.');
  assert.equal(await link(page, 'Change…').count(), 0);
  for (const name of ['tagged', 'secret']) await server.ask('DELETE', `v1/schedules/${name}`);
});

test('the future: stored jobs by topic and coming occurrences, told apart', async (t) => {
  await server.ask('PUT', 'v1/schedules/often', {topic: 'report', body: 1, every: '10m'});
  const page = await open(t);
  const chart = page.locator('.future .chart');
  await chart.waitFor();
  await page.locator('.future .legend', {hasText: 'from schedules, not stored yet 6'}).waitFor();
  await page.locator('.future .legend', {hasText: 'mail'}).or(page.locator('.future .legend', {hasText: 'many'})).waitFor();
  assert.match(await chart.getAttribute('aria-label'), /jobs fall due in this time: many/);
  await button(page, 'Next day').click();
  await page.locator('.future .legend', {hasText: 'from schedules, not stored yet 144'}).waitFor();
  await page.locator('.future .u-over').waitFor();
  const box = await chart.boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 80);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.55, box.y + 90, {steps: 4});
  await page.mouse.up();
  await button(page, 'Whole span').click();
  await page.locator('.future .legend', {hasText: 'from schedules, not stored yet 144'}).waitFor();
  await page.locator('.future .u-over').waitFor();
  await page.mouse.click(box.x + box.width * 0.5, box.y + 80);  // one bar of 30 minutes
  await page.mouse.move(1, 1);
  await page.locator('.future .legend', {hasText: 'from schedules, not stored yet 3'}).waitFor();
  await button(page, 'Whole span').click();
  await button(page, 'As a table').click();
  await page.locator('.future table button').nth(3).click();  // the same for those who have no mouse
  await page.locator('.future .legend', {hasText: 'from schedules, not stored yet 3'}).waitFor();
  await server.ask('DELETE', 'v1/schedules/often');
});

test('with more topics than the server watches, the last one is seen, too', async (t) => {
  const own = await Server.start();
  t.after(() => own.stop());
  for (let at = 0; at < 1100; at += 550) await own.ask('POST', 'v1/jobs', Array.from({length: 550}, (_, n) => ({topic: `t${String(at + n).padStart(4, '0')}`, body: 1, delay: '1d'})));
  await own.bury('zzz', 'last', 'no');
  const page = await open(t, '', {url: own.url});
  await page.getByRole('link', {name: 'zzz: 1 dead job'}).waitFor();
  await page.goto(`${own.url}#/topics?filter=zz`);
  await row(page, 'topic', 'zzz').waitFor();
  await page.goto(`${own.url}#/topics`);
  await see(page, '1,101 topics');
});

test('callbacks: hosts that answer and hosts that do not', async (t) => {
  const [good, bad] = [await receiver(200), await receiver(500)];
  t.after(() => (good.stop(), bad.stop()));
  await server.push('hook', {id: 'well', callback: good.url});
  await server.push('hook', {id: 'ill', callback: bad.url});
  const page = await open(t, 'callbacks');
  await row(page, 'host', new URL(good.url).host).getByText('100%').waitFor();
  await row(page, 'host', new URL(bad.url).host).getByText('0%').waitFor();
  await link(page, 'ill').click();
  await page.getByRole('heading', {name: 'ill'}).waitFor();
});

test('consumers: who waits, and who holds what', async (t) => {
  const pop = server.ask('POST', 'v1/topics/errand/pop', {wait: '60s', lease: '2m'});
  const page = await open(t, 'consumers');
  await page.locator('tr', {hasText: 'errand'}).getByText('127.0.0.1:').waitFor();
  await server.push('errand', {id: 'run'});
  await pop;
  await link(page, 'run').waitFor();
  await page.locator('tr', {hasText: 'errand'}).getByText(/in [12]m/).first().waitFor();
  // Since when it is held, however often the lease is extended.
  await page.locator('tr', {hasText: 'run'}).getByText(/^[0-9]+s ago$|^now$|^just now$/).first().waitFor();
  await page.locator('.tile', {hasText: 'leases held'}).getByText(/^oldest: /).waitFor();
});

test('a stuck job is found from the overview', async (t) => {
  await server.push('stuck', {id: 'stuck:1'});
  for (const id of ['f1', 'f2', 'f3']) await server.push('flaky', {id});
  const page = await open(t);
  await see(page, 'live');
  const {jobs} = await server.ask('POST', 'v1/topics/flaky/pop', {count: 3});
  await server.ask('POST', 'v1/nack', {leases: jobs.map((job) => job.lease), delay: '1h', reason: 'no'});
  await page.getByRole('link', {name: 'flaky: 3 attempts failed within a minute · 0 acked'}).waitFor();
  await page.getByRole('link', {name: /^stuck: 1 ready job, and no consumer · the oldest has waited for 1\ds/}).click();
  await link(page, 'stuck:1').click();
  await page.getByRole('heading', {name: 'stuck:1'}).waitFor();
  await page.locator('.head .badge', {hasText: 'ready'}).waitFor();
});

test('another page begins at its top with its heading, and the way back is where it was', async (t) => {
  const page = await open(t, 'jobs?topic=many&state=delayed');
  await link(page, 'm049').scrollIntoViewIfNeeded();
  assert.ok(await page.evaluate(() => scrollY > 300));
  await link(page, 'm049').click();
  await page.getByRole('heading', {name: 'm049'}).waitFor();
  await until('the top and the heading', () => page.evaluate(() => scrollY === 0 && document.activeElement.tagName === 'H1'));
  await page.goBack();
  await link(page, 'm049').waitFor();
  await page.goto(`${server.url}#/no/such/page`);
  await page.getByRole('heading', {name: 'There is no such page'}).waitFor();
});

test('it goes on by itself when the connection was lost', async (t) => {
  const own = await Server.start();
  t.after(() => own.stop());
  await own.push('order', {delay: '1h'});
  const page = await open(t, 'topics', {url: own.url, mayFail: /./});
  await row(page, 'topic', 'order').waitFor();
  await own.kill();
  await see(page, /The connection to the server is lost/);
  await page.locator('.connection.lost').waitFor();
  await own.run();
  await page.locator('.connection.live').waitFor();
  await page.locator('.lost').waitFor({state: 'detached'});
  await own.push('order', {delay: '1h'});
  await row(page, 'topic', 'order').locator('td').nth(1).getByText('2', {exact: true}).waitFor();
});

describe('tokens', () => {
  let own;
  before(async () => {
    own = await Server.start({tokens: [{name: 'reader', scopes: ['read']}, {name: 'ops', scopes: ['admin']}, {name: 'shop', scopes: ['push', 'read'], topics: ['shop.*']}]});
    for (const topic of ['shop.order', 'other']) await own.ask('POST', `v1/topics/${topic}/jobs`, {body: 1, id: 'x', delay: '1h'}, {Authorization: 'Bearer secret-ops'});
  });
  after(() => own.stop());

  async function enter(page, secret) {
    await page.getByLabel('Token').fill(secret);
    await button(page, 'Sign in').click();
  }

  test('a wrong token is refused; the right one is kept for the tab only', async (t) => {
    const page = await open(t, 'topics', {url: own.url, mayFail: /401/});
    await enter(page, 'nonsense');
    await see(page, 'The server does not know this token.');
    await enter(page, 'secret-ops');
    await button(page, 'Pause other').waitFor();
    await page.reload();
    await button(page, 'Pause other').waitFor();
    assert.equal(await page.evaluate(() => JSON.stringify({...localStorage}).includes('secret')), false);
    assert.equal(await page.evaluate(() => document.cookie), '');
    await button(page, 'Sign out').click();
    await page.getByLabel('Token').waitFor();
    assert.equal(await page.evaluate(() => JSON.stringify({...sessionStorage}).includes('secret')), false);
  });

  test('who may only read sees everything and can change nothing', async (t) => {
    const page = await open(t, 'topics/other/jobs/x', {url: own.url, mayFail: /401/});
    await enter(page, 'secret-reader');
    await page.getByRole('heading', {name: 'x'}).waitFor();
    await see(page, 'read only');
    assert.equal(await page.locator('.head .button').count(), 0);
    await page.goto(`${own.url}#/topics/other`);
    await see(page, 'Settings');
    assert.equal(await page.getByLabel('attempts').isDisabled(), true);
    assert.equal(await page.locator('.head .button').count(), 0);
  });

  test('a token for some topics sees these, live', async (t) => {
    const page = await open(t, 'topics', {url: own.url, mayFail: /401|403/});
    await enter(page, 'secret-shop');
    await row(page, 'topic', 'shop.order').waitFor();
    assert.equal(await row(page, 'topic', 'other').count(), 0);
    await own.ask('POST', 'v1/topics/shop.order/jobs', {body: 1, delay: '1h'}, {Authorization: 'Bearer secret-ops'});
    await row(page, 'topic', 'shop.order').locator('td').nth(1).getByText('2', {exact: true}).waitFor();
  });
});

const views = ['', 'topics', 'topics/many', 'jobs', 'jobs?topic=pay&state=dead', 'topics/mail/jobs/form%3A1', 'push', 'schedules', 'schedule/new', 'callbacks', 'consumers'];

describe('for everyone', () => {
  for (const colorScheme of ['light', 'dark']) {
    test(`axe finds nothing serious in ${colorScheme}`, async (t) => {
      const page = await open(t, '', {colorScheme});
      await see(page, 'live');
      assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), colorScheme);
      for (const view of views) {
        await page.goto(`${server.url}#/${view}`);
        await page.locator('h1').waitFor();
        await page.evaluate(axe.source);
        const {violations} = await page.evaluate(() => globalThis.axe.run());
        const serious = violations.filter((each) => ['serious', 'critical'].includes(each.impact));
        assert.deepEqual(serious.map((each) => `${each.id}: ${each.nodes.map((node) => `${node.target} ${node.any[0]?.message ?? ''}`).join('; ')}`), [], `#/${view}`);
      }
    });
  }

  test('axe finds nothing serious in the dialogs, the sign-in and what is said of a lost connection', async (t) => {
    const own = await Server.start({tokens: [{name: 'ops', scopes: ['admin']}]});
    t.after(() => own.stop());
    await own.ask('POST', 'v1/topics/waste/jobs', {body: 1, id: 'x', delay: '1h'}, {Authorization: 'Bearer secret-ops'});
    const page = await open(t, 'topics/waste', {url: own.url, mayFail: /./});
    const look = async (what) => {
      await page.evaluate(axe.source);
      const {violations} = await page.evaluate(() => globalThis.axe.run());
      assert.deepEqual(violations.filter((each) => ['serious', 'critical'].includes(each.impact)).map((each) => `${each.id}: ${each.nodes.map((node) => node.target)}`), [], what);
    };
    await page.getByLabel('Token').waitFor();
    await look('sign-in');
    await page.getByLabel('Token').fill('secret-ops');
    await button(page, 'Sign in').click();
    for (const [view, name] of [['topics/waste', 'Purge…'], ['topics/waste/jobs/x', 'Reschedule…'], ['topics/waste/jobs/x', 'Cancel…']]) {
      await page.goto(`${own.url}#/${view}`);
      await button(page, name).click();
      await page.getByRole('dialog').waitFor();
      await look(name);
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({state: 'detached'});
    }
    await own.kill();
    await see(page, /The connection to the server is lost/);
    await look('lost connection');
  });

  test('the theme is chosen, and stays', async (t) => {
    const page = await open(t, '', {colorScheme: 'light'});
    const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
    await button(page, 'Colours: as the system').click();
    await button(page, 'Colours: light').click();
    assert.equal(await theme(), 'dark');
    await page.reload();
    await button(page, 'Colours: dark').waitFor();
    assert.equal(await theme(), 'dark');
  });

  test('both languages', async (t) => {
    const page = await open(t, '', {locale: 'zh-CN'});
    await page.getByRole('heading', {name: '总览'}).waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.lang), 'zh-CN');
    for (const [view, title] of [['topics', 'Topic'], ['jobs', '任务'], ['schedules', '计划'], ['callbacks', '回调'], ['consumers', '消费者'], ['push', '推送任务']]) {
      await page.goto(`${server.url}#/${view}`);
      await page.getByRole('heading', {name: title, level: 1}).waitFor();
    }
    await button(page, 'English').click();
    await page.getByRole('heading', {name: 'Push a job'}).waitFor();
    await page.reload();
    await page.getByRole('heading', {name: 'Push a job'}).waitFor();
  });

  for (const width of [360, 1280]) {
    test(`nothing is wider than a screen of ${width} pixels, whatever the names are`, async (t) => {
      const long = `long.${'name'.repeat(40)}`;
      const waits = new AbortController();
      t.after(() => waits.abort());
      for (const id of [`id-${'x'.repeat(240)}`, 'طلب:إغلاق:٤٧١١', '🧾 order']) await server.push(long, {id, delay: '1h', group: 'g'.repeat(200), on_conflict: 'replace'});
      fetch(new URL('v1/pop', server.url), {method: 'POST', body: JSON.stringify({topics: [long], wait: '60s'}), signal: waits.signal}).catch(() => undefined);
      const page = await open(t, '', {viewport: {width, height: 800}, hasTouch: width < 500});
      await see(page, 'live');
      for (const view of [...views, `topics/${long}`, `jobs?topic=${long}&state=delayed`, `topics/${long}/jobs/id-${'x'.repeat(240)}`, `topics/${long}/jobs/${encodeURIComponent('🧾 order')}`]) {
        await page.goto(`${server.url}#/${view}`);
        await page.locator('h1').waitFor();
        await page.locator('.panel').first().waitFor();
        assert.ok(await page.evaluate(() => document.scrollingElement.scrollWidth <= innerWidth), `#/${view}`);
      }
    });
  }

  test('the views on a phone', async (t) => {
    const page = await open(t, '', {viewport: {width: 390, height: 844}, hasTouch: true});
    await see(page, 'live');
    await page.getByRole('navigation').getByRole('link', {name: 'Jobs'}).click();
    await see(page, 'Choose a topic');
  });

  test('the keyboard alone', async (t) => {
    const page = await open(t, 'topics');
    await row(page, 'topic', 'pay').waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.tagName), 'MAIN');
    await link(page, 'pay').focus();
    await page.keyboard.press('Enter');
    await button(page, 'Purge…').focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.type('pay');
    assert.equal(await page.getByLabel('Type pay to confirm').inputValue(), 'pay');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({state: 'detached'});
    assert.equal((await server.counts('pay')).dead, 1);
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Purge…');
  });
});

describe('how it is served', () => {
  test('below a path of a proxy', async (t) => {
    const proxy = await proxyBelow('/tools/queue/', server);
    const page = await open(t, 'topics', {url: proxy.url});
    t.after(() => proxy.stop());  // after the page is closed, which reads events through it
    await row(page, 'topic', 'pay').waitFor();
    await button(page, 'Pause pay').click();
    await button(page, 'Resume pay').click();
    await button(page, 'Pause pay').waitFor();
    await see(page, 'live');
  });

  test('its size, and how soon it can be used', async (t) => {
    let page;
    const took = [];
    for (let n = 0; n < 5; ++n) {
      page = await open(t);  // each has a cache of its own, which is empty
      await page.goto('about:blank');
      await page.addInitScript(() => {
        const look = () => (document.querySelector('.tile') && document.querySelector('.future canvas') ? (globalThis.usable = performance.now()) : requestAnimationFrame(look));
        look();
      });
      await page.goto(server.url);
      await page.waitForFunction(() => globalThis.usable);
      await page.locator('.tile').first().click({trial: true});
      took.push(Math.round(await page.evaluate(() => globalThis.usable)));
    }
    console.log(`# first view with its chart, empty cache: ${took.sort((a, b) => a - b).join(', ')} ms`);
    const sizes = await page.evaluate(async () => {
      const urls = [location.href.split('#')[0], ...[...document.querySelectorAll('script[src], link[href]')].map((each) => each.src || each.href)];
      return Promise.all(urls.map(async (url) => Number((await fetch(url)).headers.get('content-length'))));
    });
    const all = sizes.reduce((a, b) => a + b, 0);
    console.log(`# assets, compressed: ${all} bytes`);
    assert.ok(all > 10_000 && all < 150 * 1024, `${all} bytes`);
    assert.equal(await page.evaluate(() => [...document.querySelectorAll('script')].every((each) => each.src)), true, 'no script within the page');
  });

  test('the server prints its address first, and server.dashboard = false switches it off', async (t) => {
    assert.match(server.said, /is ready.*\nSee it: http:\/\/127\.0\.0\.1:\d+\/\n/);
    const own = await Server.start({options: ['--set', 'server.dashboard=false']});
    t.after(() => own.stop());
    assert.equal((await fetch(own.url)).status, 404);
    assert.doesNotMatch(own.said, /See it/);
  });
});
