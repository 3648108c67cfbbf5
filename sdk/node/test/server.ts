// A real server for the tests: a process of its own on free ports, with an own folder for its data.
import {spawn, type ChildProcess} from 'node:child_process';
import {once} from 'node:events';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import type {TestContext} from 'node:test';

export const DEADLINE = 60_000;
const PROGRAM = process.env['DELAYQ'] ?? join(__dirname, '..', '..', '..', 'build', 'release', 'delayq');

/** Whether the long variants are wanted. */
export const DEEP = process.env['DELAYQ_SDK_DEEP'] === '1';

export const quiet = {debug() {}, info() {}, warn() {}, error() {}};

/** Random choices that a failed test can repeat: DELAYQ_SEED=n. */
export function newRandom(): () => number {
  let state = Number(process.env['DELAYQ_SEED'] ?? Math.floor(Math.random() * 2 ** 32)) >>> 0;
  console.log(`DELAYQ_SEED=${state}`);
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Waits for what another process brings about. */
export async function eventually(what: string, condition: () => boolean | Promise<boolean>, longest = DEADLINE): Promise<void> {
  const end = Date.now() + longest;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export class Server {
  private process: ChildProcess | undefined;
  readonly folder = mkdtempSync(join(tmpdir(), 'delayq-node-'));
  port = 0;
  private said = '';

  private constructor(private options: readonly string[]) {}

  /** Starts a server that ends with the test. `configuration` is the text of a configuration file. */
  static async start(test: Pick<TestContext, 'after'>, configuration?: string, ...options: string[]): Promise<Server> {
    const server = new Server(options);
    if (configuration !== undefined) {
      const file = join(server.folder, 'delayq.toml');
      writeFileSync(file, configuration);
      server.options = ['--config', file, ...options];
    }
    test.after(async () => {
      await server.kill();
      rmSync(server.folder, {recursive: true, force: true});
    });
    await server.begin();
    return server;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Starts it (again), on the port that it had. */
  async begin(): Promise<void> {
    const data = join(this.folder, 'data');
    const child = spawn(PROGRAM, ['serve', '--resp', this.address, '--http', '127.0.0.1:0', '--data', data, '--log-level', 'warn', ...this.options], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.process = child;
    let out = '';
    child.stderr!.on('data', (text: Buffer) => (this.said = (this.said + text.toString()).slice(-4096)));
    const ready = new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('the server did not start in time')), DEADLINE);
      child.stdout!.on('data', (text: Buffer) => {
        out += text.toString();
        const found = /redis-cli (?:--tls )?-p (\d+) /.exec(out);
        if (found === null) return;
        clearTimeout(timer);
        this.port = Number(found[1]);
        resolve();
      });
      child.on('error', reject);
      child.on('exit', () => {
        clearTimeout(timer);
        reject(new Error(`the server ended: ${this.said}`));
      });
    });
    await ready;
  }

  /** kill -9 */
  async kill(): Promise<void> {
    const child = this.process;
    this.process = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  /** As a user would stop it. */
  async stop(): Promise<void> {
    const child = this.process;
    this.process = undefined;
    if (child === undefined) return;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  }
}
