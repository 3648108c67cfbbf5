<?php

declare(strict_types=1);

namespace Delayq\Tests;

use Delayq\Client;
use PHPUnit\Framework\TestCase;

/**
 * Workers and servers that are killed, and connections that break: nothing is lost, nothing is handed to two at
 * once, and the worker goes on by itself.
 */
final class RobustnessTest extends TestCase
{
    private const DEADLINE = 60.0;

    private Server $server;
    private string $events;
    /** @var list<resource> */
    private array $processes = [];

    protected function setUp(): void
    {
        $this->server = new Server();
        $this->events = "{$this->server->directory}/events";
        touch($this->events);
    }

    protected function tearDown(): void
    {
        foreach ($this->processes as $process) {
            proc_terminate($process, SIGKILL);
            proc_close($process);
        }
        $this->processes = [];
    }

    public function testWorkerKilledInTheMiddleOfItsJobs(): void
    {
        $ids = $this->enqueue($this->server->client(), 0, 200);
        $worker = $this->start($this->workerCommand($this->server->port, 8, 1.0, 20));
        $this->waitFor(fn () => count($this->events('end')) >= 50, 'fifty jobs are done');
        proc_terminate($worker, SIGKILL);
        $pids = array_unique(array_column($this->events(), 'pid'));
        self::assertCount(8, $pids);
        $this->waitFor(fn () => array_filter($pids, static fn (int $pid) => posix_kill($pid, 0)) === [], 'the processes of the handlers are gone', 3.0);
        $killed = hrtime(true);
        $this->start($this->workerCommand($this->server->port, 8, 1.0, 20));
        $this->waitFor(fn () => $this->allDone($ids), 'all jobs are done');
        $this->assertNeverTwoAtOnce($killed);
    }

    public function testProcessOfAHandlerKilled(): void
    {
        $ids = $this->enqueue($this->server->client(), 0, 100, ['backoff' => '100ms']);
        $worker = $this->start($this->workerCommand($this->server->port, 4, 30.0, 20));
        for ($i = 1; $i <= 5; ++$i) {
            $this->waitFor(fn () => count($this->events('end')) >= 10 * $i, 'jobs are done');
            $events = $this->events();
            posix_kill(end($events)['pid'], SIGKILL);
        }
        $this->waitFor(fn () => $this->allDone($ids), 'all jobs are done');
        self::assertGreaterThan(4, count(array_unique(array_column($this->events(), 'pid'))));
        self::assertTrue(proc_get_status($worker)['running']);
    }

    public function testServerKilledAndStartedAgain(): void
    {
        $client = $this->server->client();
        $ids = $this->enqueue($client, 0, 200);
        $worker = $this->start($this->workerCommand($this->server->port, 8, 1.0, 30));
        for ($round = 1; $round <= 3; ++$round) {
            $this->waitFor(fn () => count($this->events('end')) >= 50 * $round, 'jobs are done');
            $this->server->kill();
            usleep(200_000);
            $this->server->start();
            $ids = [...$ids, ...$this->enqueue($client, 200 + 50 * $round, 50)];
        }
        $this->waitFor(fn () => $this->allDone($ids), 'all jobs are done');
        $this->assertNeverTwoAtOnce();
        self::assertTrue(proc_get_status($worker)['running']);
        proc_terminate($worker);
        $this->waitFor(static fn () => !proc_get_status($worker)['running'], 'the worker has stopped', 15.0);
    }

    public function testConnectionsThatAreCut(): void
    {
        $seed = random_int(0, 1 << 30);
        $seconds = getenv('DELAYQ_SDK_DEEP') === '1' ? 60 : 10;
        $proxy = $this->start([PHP_BINARY, __DIR__ . '/proxy.php', (string) $this->server->port, '10', (string) $seed], [['pipe', 'r'], ['pipe', 'w'], ['pipe', 'w']], $pipes);
        $port = (int) fgets($pipes[1]);
        $worker = $this->start($this->workerCommand($port, 8, 1.5, 10));
        $client = new Client("127.0.0.1:$port", retryFor: 30.0);
        $ids = [];
        $until = microtime(true) + $seconds;
        for ($i = 0; microtime(true) < $until; ++$i) {
            $ids = [...$ids, ...($i % 2 === 0 ? $this->enqueue($client, 10 * $i, 10) : [$client->enqueue('t', "single$i", 'x')])];
            usleep(10_000);
        }
        $this->waitFor(fn () => $this->allDone($ids), "all jobs are done (seed $seed)");
        $this->assertNeverTwoAtOnce();
        self::assertTrue(proc_get_status($worker)['running']);
        proc_terminate($worker);
        $this->waitFor(static fn () => !proc_get_status($worker)['running'], 'the worker has stopped', 15.0);
        self::assertSame(0, proc_get_status($worker)['exitcode'] === -1 ? 0 : proc_get_status($worker)['exitcode']);
        fclose($pipes[0]);
        $cuts = (int) stream_get_contents($pipes[2]);
        self::assertGreaterThan(10, $cuts, 'the proxy has cut too few connections');
    }

    // ---- helpers

    /** @return list<string> */
    private function workerCommand(int $port, int $concurrency, float $lease, int $ms): array
    {
        return [PHP_BINARY, __DIR__ . '/worker.php', (string) $port, $this->events, (string) $concurrency, (string) $lease, (string) $ms];
    }

    /** @return resource */
    private function start(array $command, ?array $files = null, ?array &$pipes = null)
    {
        $files ??= [['file', '/dev/null', 'r'], ['file', "{$this->server->directory}/out", 'a'], ['file', "{$this->server->directory}/out", 'a']];
        return $this->processes[] = proc_open($command, $files, $pipes);
    }

    /** @return list<string> the ids */
    private function enqueue(Client $client, int $from, int $count, array $options = []): array
    {
        $jobs = array_map(static fn (int $i): array => ['topic' => 't', 'id' => "j$i", 'payload' => 'x'] + $options, range($from, $from + $count - 1));
        $results = $client->enqueueMany($jobs);
        foreach ($results as $result) {
            self::assertIsString($result, $result instanceof \Throwable ? $result->getMessage() : '');
        }
        return $results;
    }

    /** @return list<array{what: string, id: string, attempt: int, pid: int, at: int}> */
    private function events(?string $what = null): array
    {
        $events = [];
        foreach (explode("\n", file_get_contents($this->events)) as $line) {
            if (sscanf($line, '%s %s %d %d %d', $kind, $id, $attempt, $pid, $at) === 5 && ($what === null || $kind === $what)) {
                $events[] = ['what' => $kind, 'id' => $id, 'attempt' => $attempt, 'pid' => $pid, 'at' => $at];
            }
        }
        return $events;
    }

    /** @param list<string> $ids */
    private function allDone(array $ids): bool
    {
        if (array_diff($ids, array_column($this->events('end'), 'id')) !== []) {
            return false;
        }
        $stats = (new \ReflectionMethod(Client::class, 'command'))->invoke($this->server->client(), ['STATS', 't']);
        return $stats['delayed'] + $stats['ready'] + $stats['reserved'] + $stats['dead'] === 0;
    }

    /** The handlers of a job never overlap; those without an end were killed before `$killed`. */
    private function assertNeverTwoAtOnce(?int $killed = null): void
    {
        $events = $this->events();
        usort($events, static fn (array $a, array $b) => $a['at'] <=> $b['at']);
        $running = [];
        foreach ($events as $event) {
            $id = $event['id'];
            if ($event['what'] === 'start') {
                self::assertTrue(!isset($running[$id]) || ($killed !== null && $event['at'] > $killed), "$id runs twice at once");
                $running[$id] = $event['pid'];
            } elseif (($running[$id] ?? null) === $event['pid']) {
                unset($running[$id]);
            }
        }
        self::assertGreaterThan(100, count($events));
    }

    private function waitFor(\Closure $condition, string $what, float $seconds = self::DEADLINE): void
    {
        $deadline = microtime(true) + $seconds;
        while (!$condition()) {
            if (microtime(true) > $deadline) {
                $logs = array_map(static fn (string $file) => "$file:\n" . substr(file_get_contents($file), -2000), glob("{$this->server->directory}/{out,log,logs/*error*}", GLOB_BRACE));
                self::fail("never: $what\n" . implode("\n", $logs));
            }
            usleep(20_000);
        }
    }
}
