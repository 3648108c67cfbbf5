<?php

declare(strict_types=1);

namespace Delayq\Tests;

use Delayq\Client;
use Delayq\DelayqException;
use Delayq\Handler;
use Delayq\Job;
use Delayq\LogFiles;
use Delayq\RetryIn;
use Delayq\Worker;
use PHPUnit\Framework\TestCase;

final class WorkerTest extends TestCase
{
    private static ?Server $server = null;

    private Client $client;
    private string $file;

    protected function setUp(): void
    {
        self::$server ??= new Server();
        $this->client = self::$server->client();
        $this->file = self::$server->directory . '/' . bin2hex(random_bytes(6));
        touch($this->file);
    }

    public static function tearDownAfterClass(): void
    {
        self::$server = null;
    }

    private function worker(mixed ...$options): Worker
    {
        return new Worker($this->client, ...$options + ['logger' => new LogFiles(self::$server->directory . '/logs')]);
    }

    /** Other processes write to the file, too. */
    private function note(string $what): void
    {
        file_put_contents($this->file, "$what\n", FILE_APPEND);
    }

    /** @return list<string> */
    private function notes(): array
    {
        return file($this->file, FILE_IGNORE_NEW_LINES);
    }

    private function waitFor(\Closure $condition): void
    {
        $deadline = microtime(true) + 30;
        while (!$condition()) {
            self::assertLessThan($deadline, microtime(true), 'never: ' . implode(', ', $this->notes()));
            usleep(10_000);
        }
    }

    /** @param \Closure(): mixed $do in a process of its own */
    private function fork(\Closure $do): int
    {
        $pid = pcntl_fork();
        if ($pid === 0) {
            $do();
            posix_kill(getmypid(), SIGKILL);
        }
        return $pid;
    }

    public function testHandlersAreCallablesClassesOrObjects(): void
    {
        foreach (['closure', 'class', 'object', 'made'] as $kind) {
            $this->client->enqueue("kind.$kind", '1', $this->file);
        }
        $done = 0;
        $worker = $this->worker(concurrency: 1, factory: static fn (string $class) => new $class('made'));
        $worker->handle('kind.closure', fn (Job $job) => $this->note("closure $job->topic"));
        $worker->handle('kind.class', Performer::class);
        $worker->handle('kind.object', new Performer('object'));
        $worker->handle('kind.made', Performer::class);
        $worker->use(static function (Job $job, callable $next) use (&$done, $worker): void {
            $next($job);
            ++$done === 4 && $worker->stop();
        });
        $worker->run();
        $notes = $this->notes();
        sort($notes);
        self::assertSame(['closure kind.closure', 'made kind.class', 'made kind.made', 'object kind.object'], $notes);
        $this->expectExceptionMessage('perform');
        $worker->handle('x', self::class);
    }

    public function testMiddlewareProcessStartAndJobsPerProcess(): void
    {
        for ($i = 0; $i < 6; ++$i) {
            $this->client->enqueue('middle', "$i", 'x');
        }
        $worker = $this->worker(concurrency: 1, jobsPerProcess: 2);
        $worker->onProcessStart(fn () => $this->note('start'));
        $around = fn (string $name) => function (Job $job, callable $next) use ($name): void {
            $this->note("$name before");
            $next($job);
            $this->note("$name after");
        };
        $worker->use($around('outer'))->use($around('inner'));
        $worker->handle('middle', function (Job $job) use ($worker): void {
            $this->note("handler $job->id " . (Job::running() === $job ? 'running' : 'not running'));
            $job->id === '5' && $worker->stop();
        });
        $worker->run();
        $one = static fn (int $i): array => ['outer before', 'inner before', "handler $i running", 'inner after', 'outer after'];
        self::assertSame(['start', ...$one(0), ...$one(1), 'start', ...$one(2), ...$one(3), 'start', ...$one(4), ...$one(5)], $this->notes());
        self::assertNull(Job::running());
    }

    public function testHandlersThatExitOrBreakPhp(): void
    {
        foreach (['exit', 'memory', 'kill', 'good'] as $i => $id) {
            $this->client->enqueue('broken', $id, 'x', retry: 1, priority: $i);
        }
        $worker = $this->worker(concurrency: 1);
        $worker->handle('broken', static function (Job $job) use ($worker): void {
            ini_set('display_errors', '0');
            ini_set('log_errors', '0');
            match ($job->id) {
                'exit' => exit(3),
                'memory' => ini_set('memory_limit', '64M') . str_repeat('x', 1 << 27),
                'kill' => posix_kill(getmypid(), SIGKILL),
                'good' => $worker->stop(),
            };
        });
        $worker->run();
        self::assertSame('the handler called exit()', $this->client->get('broken', 'exit')->outcome);
        self::assertStringContainsString('fatal error: Allowed memory size', $this->client->get('broken', 'memory')->outcome);
        self::assertStringContainsString('signal 9', $this->client->get('broken', 'kill')->outcome);
        self::assertSame('done', $this->client->get('broken', 'good')->state);
    }

    public function testOnStopInterruptsAHandlerThatDoesNotLook(): void
    {
        $this->client->enqueue('interrupt', '1', 'x');
        $worker = $this->worker(concurrency: 1, lease: 0.6);
        $worker->handle('interrupt', function (Job $job) use ($worker): void {
            $job->onStop(function (string $reason): void {
                $this->note("told $reason");
                throw new \RuntimeException('interrupted');
            });
            $this->client->dequeue('interrupt', '1');
            $worker->stop();
            for ($i = 0; $i < 1_000; ++$i) {
                usleep(10_000);
            }
            $this->note('not reached');
        });
        $worker->run();
        self::assertSame(['told cancelled'], $this->notes());
        self::assertNull($this->client->get('interrupt', '1'));
    }

    public function testAJobThatIsHandedOutAgainWaitsForItsEarlierHandler(): void
    {
        $this->client->enqueue('twice', '1', 'old');
        $worker = $this->worker(concurrency: 3);
        $worker->handle('twice', function (Job $job) use ($worker): void {
            $this->note("start $job->payload");
            if ($job->payload === 'old') {
                $this->client->enqueue('twice', '1', 'new');
                $this->note('told ' . $job->stopReason(20.0));
                usleep(300_000);
            } else {
                $worker->stop();
            }
            $this->note("end $job->payload");
        });
        $worker->run();
        self::assertSame(['start old', 'told lease_lost', 'end old', 'start new', 'end new'], $this->notes());
        self::assertSame('done', $this->client->get('twice', '1')->state);
    }

    public function testAHandlerThatDoesNotEndIsEndedAndItsJobGivenBack(): void
    {
        $this->client->enqueue('endless', '1', 'x');
        $worker = $this->worker(concurrency: 1, grace: 0.2);
        $worker->handle('endless', function () use ($worker): void {
            $this->note((string) getmypid());
            $worker->stop();
            while (true) {
                usleep(10_000);
            }
        });
        $began = microtime(true);
        $worker->run();
        self::assertLessThan(5.0, microtime(true) - $began);
        self::assertContains($this->client->get('endless', '1')->state, ['ready', 'delayed']);
        self::assertFalse(posix_kill((int) $this->notes()[0], 0));
        $this->client->dequeue('endless', '1');
    }

    public function testSignalsStopItAndJobsInItsHandsAreFinished(): void
    {
        foreach ([SIGTERM, SIGINT] as $signal) {
            $ids = array_map(fn (int $i) => $this->client->enqueue("signal$signal", "$i", 'x'), range(0, 5));
            $parent = getmypid();
            $worker = $this->worker(concurrency: 3);
            $worker->handle("signal$signal", function (Job $job) use ($parent, $signal): void {
                $this->note("begin $signal");
                if ($job->id === '0') {
                    $this->waitFor(fn () => count(array_keys($this->notes(), "begin $signal", true)) === 3);
                    posix_kill($parent, $signal);
                }
                usleep(300_000);
                $this->note("end $job->id");
            });
            $worker->run();
            $states = array_map(fn (string $id) => $this->client->get("signal$signal", $id)->state, $ids);
            sort($states);
            self::assertSame(['done', 'done', 'done', 'ready', 'ready', 'ready'], $states);
        }
        self::assertSame(SIG_DFL, pcntl_signal_get_handler(SIGTERM));
    }

    public function testAWorkerThatWaitsStopsAtOnce(): void
    {
        $worker = $this->worker();
        $worker->handle('nothing', static fn () => null);
        $parent = getmypid();
        $pid = $this->fork(static function () use ($parent): void {
            usleep(500_000);
            posix_kill($parent, SIGTERM);
        });
        $began = microtime(true);
        $worker->run();
        self::assertLessThan(5.0, microtime(true) - $began);
        pcntl_waitpid($pid, $status);
    }

    public function testAWorkerStartsBeforeItsServer(): void
    {
        $server = new Server();
        $server->client()->enqueue('t', '1', 'x');
        $server->kill();
        $pid = $this->fork(function () use ($server): void {
            usleep(500_000);
            $server->start();
            $this->waitFor(fn () => in_array('over', $this->notes(), true));
            $server->kill();
        });
        $worker = new Worker($server->client(), logger: new LogFiles(self::$server->directory . '/logs'));
        $worker->handle('t', function () use ($worker): void {
            $this->note('done');
            $worker->stop();
        });
        $worker->run();
        $this->note('over');
        self::assertSame(['done', 'over'], $this->notes());
        pcntl_waitpid($pid, $status);
    }

    public function testOverTls(): void
    {
        $directory = self::$server->directory;
        $key = openssl_pkey_new(['private_key_type' => OPENSSL_KEYTYPE_EC, 'curve_name' => 'prime256v1']);
        file_put_contents("$directory/openssl.cnf", "[req]\ndistinguished_name=dn\n[dn]\n[ext]\nsubjectAltName=IP:127.0.0.1\nbasicConstraints=CA:TRUE\n");
        $options = ['config' => "$directory/openssl.cnf", 'x509_extensions' => 'ext', 'digest_alg' => 'sha256'];
        $certificate = openssl_csr_sign(openssl_csr_new(['commonName' => '127.0.0.1'], $key, $options), null, $key, 2, $options);
        openssl_x509_export_to_file($certificate, "$directory/cert.pem");
        openssl_pkey_export_to_file($key, "$directory/key.pem", null, $options);
        $server = new Server("[tls]\ncertificate = \"$directory/cert.pem\"\nkey = \"$directory/key.pem\"\n");
        try {
            $server->client(retryFor: 0.0, tls: true)->get('t', '1');
            self::fail('the certificate is not trusted');
        } catch (DelayqException $problem) {
            self::assertSame('unavailable', $problem->getCode());
            self::assertStringContainsString('certificate verify failed', $problem->getMessage());
        }
        $client = $server->client(tls: ['cafile' => "$directory/cert.pem"]);
        $payload = random_bytes(200_000);
        $jobs = array_map(static fn (int $i): array => ['topic' => 't', 'id' => "$i", 'payload' => $payload], range(1, 100));
        self::assertSame(array_map(strval(...), range(1, 100)), $client->enqueueMany($jobs));
        self::assertSame($payload, $client->get('t', '100')->payload);
        $worker = new Worker($client, concurrency: 4, logger: new LogFiles("$directory/logs"), jobsPerProcess: 5);
        $worker->handle('t', function (Job $job) use ($payload, $client): void {
            self::assertSame($payload, $job->payload);
            $client->get('t', $job->id);
            $this->note($job->id);
        });
        $parent = getmypid();
        $pid = $this->fork(function () use ($parent): void {
            $this->waitFor(fn () => count($this->notes()) >= 100);
            usleep(200_000);
            posix_kill($parent, SIGTERM);
        });
        $worker->run();
        pcntl_waitpid($pid, $status);
        $notes = $this->notes();
        sort($notes, SORT_NUMERIC);
        self::assertSame(array_map(strval(...), range(1, 100)), $notes);
        self::assertSame('done', $client->get('t', '50')->state);
    }

    public function testWhatCannotWork(): void
    {
        foreach ([
            'concurrency' => fn () => $this->worker(concurrency: 0),
            'lease' => fn () => $this->worker(lease: 0.01),
            'handler' => fn () => $this->worker()->handle('t', 'no such function'),
            'handle()' => fn () => $this->worker()->run(),
        ] as $field => $call) {
            try {
                $call();
                self::fail($field);
            } catch (DelayqException $problem) {
                self::assertSame('invalid', $problem->getCode());
                self::assertStringContainsString($field, $problem->getMessage());
            }
        }
        $worker = $this->worker();
        $worker->handle('a b', static fn () => null);
        $this->expectExceptionMessage('topic');
        $worker->run();
    }

    public function testWhatWasTakenAheadIsGivenBackAtAStop(): void
    {
        $ids = array_map(strval(...), range(1, 300));
        $this->client->enqueueMany(array_map(static fn (string $id): array => ['topic' => 'ahead', 'id' => $id, 'payload' => 'x', 'retry' => 1], $ids));
        $worker = $this->worker(concurrency: 2);
        $worker->handle('ahead', function (Job $job) use ($worker): void {
            $this->note($job->id);
            if (count($this->notes()) === 100) {
                $worker->stop();
            }
        });
        $worker->run();
        $notes = $this->notes();
        self::assertGreaterThanOrEqual(100, count($notes));
        self::assertLessThan(300, count($notes));
        foreach (array_diff($ids, $notes) as $id) {  // none is dead, although each may be tried only once
            $job = $this->client->get('ahead', $id);
            self::assertSame(['ready', 0], [$job->state, $job->attempts]);
        }
    }

    public function testASlowHandlerDoesNotKeepWhatWasTakenAhead(): void
    {
        $ids = [...array_map(strval(...), range(1, 300)), 'slow', ...array_map(strval(...), range(301, 350))];
        $this->client->enqueueMany(array_map(static fn (string $id): array => ['topic' => 'slow', 'id' => $id, 'payload' => 'x', 'retry' => 1], $ids));
        $make = fn (): Worker => $this->worker(concurrency: 1)->handle('slow', function (Job $job): void {
            if ($job->id === 'slow') {
                $this->waitFor(fn () => count($this->notes()) === 350);
            }
            $this->note($job->id);
        });
        $main = getmypid();
        $pids = [
            $this->fork(fn () => $make()->run()),
            $this->fork(function () use ($main): void {
                $this->waitFor(fn () => count($this->notes()) === 351);
                posix_kill($main, SIGTERM);
            }),
        ];
        $make()->run();
        posix_kill($pids[0], SIGTERM);
        array_map(static fn (int $pid) => pcntl_waitpid($pid, $status), $pids);
        self::assertCount(351, array_unique($this->notes()));
    }

    public function testALargeNumberOfShortJobs(): void
    {
        $this->client->enqueueMany(array_map(static fn (int $i): array => ['topic' => 'short', 'id' => "$i", 'payload' => 'x'], range(1, 3_000)));
        $worker = $this->worker(concurrency: 8);
        $worker->handle('short', function (Job $job) use ($worker): void {
            $this->note($job->id);
            if ($job->id === '1500') {
                throw new RetryIn(0.5, 'once more');
            }
        });
        $parent = getmypid();
        $pid = $this->fork(function () use ($parent): void {
            $this->waitFor(fn () => count($this->notes()) >= 3_001);
            posix_kill($parent, SIGTERM);
        });
        $this->client->reschedule('short', '1500', processIn: 0);
        $worker->run();
        pcntl_waitpid($pid, $status);
        self::assertCount(3_001, $this->notes());
        self::assertCount(3_000, array_unique($this->notes()));
    }
}

final class Performer implements Handler
{
    public function __construct(private readonly string $name)
    {
    }

    public function perform(Job $job): void
    {
        file_put_contents($job->payload, "$this->name $job->topic\n", FILE_APPEND);
    }
}
