// The package as a user has it: packed, unpacked elsewhere, imported in every way. Each snippet of the README and each
// example is checked by the compiler and runs against a real server; its output is what it says that it prints.
import assert from 'node:assert/strict';
import {execFileSync, spawn} from 'node:child_process';
import {once} from 'node:events';
import {cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {test, type TestContext} from 'node:test';
import {DEADLINE, Server} from './server';

const HERE = join(__dirname, '..');

/** A project that has installed the package. */
function project(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'delayq-node-package-'));
  context.after(() => rmSync(folder, {recursive: true, force: true}));
  const [packed] = JSON.parse(execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {cwd: HERE, stdio: 'pipe'}).toString());
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, '@types'), {recursive: true});
  execFileSync('tar', ['-xzf', join(folder, packed.filename), '-C', modules]);
  cpSync(join(modules, 'package'), join(modules, 'delayq'), {recursive: true});
  rmSync(join(modules, 'package'), {recursive: true});
  for (const name of ['@types/node', 'undici-types']) symlinkSync(join(HERE, 'node_modules', name), join(modules, name));
  return folder;
}

function compile(folder: string, files: string[], ...options: string[]): void {
  const compiler = join(HERE, 'node_modules', 'typescript', 'bin', 'tsc');
  try {
    execFileSync(process.execPath, [compiler, '--strict', '--module', 'node16', '--target', 'es2022', '--types', 'node', ...options, ...files], {cwd: folder, stdio: 'pipe'});
  } catch (problem) {
    throw new Error((problem as {stdout: Buffer}).stdout.toString());
  }
}

/** Runs a program until it has printed what its comments say, then stops it as a user would. */
async function run(folder: string, file: string, source: string, address: string): Promise<void> {
  const expected = [...source.matchAll(/^\/\/ prints: (.*)$/gm)].map((found) => found[1]);
  assert.ok(expected.length > 0, `${file} does not say what it prints`);
  const child = spawn(process.execPath, [file], {cwd: folder, env: {...process.env, DELAYQ_RESP: address}, stdio: ['ignore', 'pipe', 'pipe']});
  let said = '';
  let errors = '';
  child.stderr.on('data', (text: Buffer) => (errors += text.toString()));
  const timer = setTimeout(() => child.kill('SIGKILL'), DEADLINE);
  child.stdout.on('data', (text: Buffer) => {
    said += text.toString();
    if (said.split('\n').length > expected.length) child.kill('SIGTERM');
  });
  const [code, signal] = await once(child, 'close');
  clearTimeout(timer);
  assert.deepEqual(said.split('\n').slice(0, -1), expected, errors);
  // A program that ends by itself may be just about to when it is told to.
  assert.ok(code === 0 || signal === 'SIGTERM', `${file} ended with ${code}: ${errors}`);
}

test('the package has what it should, and nothing else', (context) => {
  const folder = project(context);
  const names = readdirSync(join(folder, 'node_modules', 'delayq')).sort();
  assert.deepEqual(names, ['README.md', 'dist', 'package.json']);
  const about = JSON.parse(readFileSync(join(HERE, 'package.json'), 'utf8'));
  assert.equal(about.dependencies, undefined);
});

test('import and require get the same classes, with types', (context) => {
  const folder = project(context);
  const check = "if (new other.DelayqError('invalid', 'x') instanceof DelayqError !== true || typeof Worker !== 'function' || typeof Client !== 'function') process.exit(1);";
  writeFileSync(join(folder, 'a.mjs'), `import {Client, DelayqError, Worker} from 'delayq'; import {createRequire} from 'node:module'; const other = createRequire(import.meta.url)('delayq'); ${check}`);
  execFileSync(process.execPath, ['a.mjs'], {cwd: folder});
  writeFileSync(join(folder, 'b.cjs'), `const {Client, DelayqError, Worker} = require('delayq'); import('delayq').then((other) => { ${check} });`);
  execFileSync(process.execPath, ['b.cjs'], {cwd: folder});
  const use = 'const client: Client = new Client({retryFor: "1s"}); const state: Promise<JobInfo | null> = client.get("t", "1"); void state; const code: ErrorCode = "conflict"; void code;';
  writeFileSync(join(folder, 'c.mts'), `import {Client, type ErrorCode, type JobInfo} from 'delayq'; ${use}`);
  writeFileSync(join(folder, 'd.cts'), `import {Client, type ErrorCode, type JobInfo} from 'delayq'; ${use}`);
  compile(folder, ['c.mts', 'd.cts'], '--noEmit');
  writeFileSync(join(folder, 'e.mts'), "import {Client} from 'delayq'; void new Client().enqueue('t', '1', 'x', {process_in: 1});");
  assert.throws(() => compile(folder, ['e.mts'], '--noEmit'), /process_in/);
});

test('the README and the examples', async (context) => {
  const folder = project(context);
  const programs = new Map<string, string>();
  const readme = readFileSync(join(HERE, 'README.md'), 'utf8');
  for (const found of readme.matchAll(/^```js\n([^]*?)^```$/gm)) programs.set(`readme${programs.size + 1}.mts`, found[1]!);
  assert.ok(programs.size >= 5);
  // The first one is the promise of the README: a page that fits on a screen.
  const first = programs.get('readme1.mts')!.split('\n').filter((line) => line !== '' && !line.startsWith('//'));
  assert.ok(first.length <= 15, `${first.length} lines`);
  for (const name of readdirSync(join(HERE, 'examples'))) programs.set(name, readFileSync(join(HERE, 'examples', name), 'utf8'));
  for (const [name, source] of programs) writeFileSync(join(folder, name), source);
  compile(folder, [...programs.keys()].filter((name) => name.endsWith('ts')));
  for (const [name, source] of programs) {
    await context.test(name, async (one) => {
      const server = await Server.start(one);
      await run(folder, name.replace(/\.(m?)ts$/, '.$1js'), source, server.address);
    });
  }
});
