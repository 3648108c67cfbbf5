<?php

declare(strict_types=1);

namespace Delayq;

use Delayq\Internal\Channel;
use Delayq\Internal\Dispatcher;
use Delayq\Internal\HandlerProcess;
use Delayq\Internal\StderrLog;
use Delayq\Internal\Time;

/**
 * Runs handlers for the jobs of some topics, each handler in one of `concurrency` processes.
 *
 * It extends leases while handlers run, acks jobs whose handlers return, reports the failures of others, tells
 * handlers that their job was cancelled, and goes on by itself when the server was away. SIGTERM and SIGINT stop it.
 *
 * The processes are forked when run() is called, and live on from job to job. Open connections to databases and the
 * like in the handler or in onProcessStart(), not before run(): processes cannot share them. (A Client can be
 * used: it notices.) Needs the extensions pcntl and posix, which PHP's command line has.
 */
final class Worker
{
    /** select() watches at most 1,024 files. */
    private const MOST_PROCESSES = 500;

    /** @var array<string, \Closure(Job): void> */
    private array $handlers = [];
    /** @var list<callable> */
    private array $middleware = [];
    /** @var list<callable> */
    private array $starters = [];
    private ?Dispatcher $dispatcher = null;
    private ?HandlerProcess $process = null;
    private readonly ?int $leaseMs;

    /**
     * @param int $concurrency how many handlers run at once
     * @param int|float|null $lease seconds; overrides the lease of the job and of its topic; at least 0.1
     * @param int|float $wait  how many seconds one request waits for a job
     * @param int|float $grace how many seconds handlers may go on when the worker is stopped
     * @param \Psr\Log\LoggerInterface|Log|null $logger null: warnings and errors go to standard error
     * @param (callable(class-string): object)|null $factory makes the objects of handlers that are classes;
     *        null: `new`
     * @param int $jobsPerProcess a process is replaced after so many jobs; 0: never
     */
    public function __construct(
        private readonly Client $client,
        private readonly int $concurrency = 10,
        int|float|null $lease = null,
        private readonly int|float $wait = 30,
        private readonly int|float $grace = 10,
        private readonly \Psr\Log\LoggerInterface|Log|null $logger = null,
        private $factory = null,
        private readonly int $jobsPerProcess = 0,
    ) {
        if ($concurrency < 1 || $concurrency > self::MOST_PROCESSES) {
            throw new DelayqException('invalid', "concurrency: $concurrency is not between 1 and " . self::MOST_PROCESSES);
        }
        if ($lease !== null && $lease < 0.1) {
            throw new DelayqException('invalid', "lease: $lease seconds are less than 0.1");
        }
        $this->leaseMs = $lease === null ? null : (int) round($lease * 1000);
    }

    /**
     * Says what to do with the jobs of a topic. If it returns, the job is done; if it throws, the attempt failed
     * (RetryIn and Dead say what comes next).
     *
     * @param callable(Job): void|class-string|object $handler a callable, or a class with `perform(Job $job)`, of
     *        which an object is made for each job, or one object of such a class
     */
    public function handle(string $topic, callable|string|object $handler): static
    {
        if (is_string($handler) && class_exists($handler)) {
            if (!method_exists($handler, 'perform')) {
                throw new DelayqException('invalid', "handler: $handler has no method perform()");
            }
            $this->handlers[$topic] = fn (Job $job) => ($this->factory === null ? new $handler() : ($this->factory)($handler))->perform($job);
        } elseif (is_object($handler) && method_exists($handler, 'perform')) {
            $this->handlers[$topic] = $handler->perform(...);
        } elseif (is_callable($handler)) {
            $this->handlers[$topic] = $handler(...);
        } else {
            throw new DelayqException('invalid', 'handler: expected a callable, or a class with perform()');
        }
        return $this;
    }

    /**
     * Surrounds every handler: `function (Job $job, callable $next): void { ...; $next($job); ... }`. The first one
     * is outermost.
     *
     * @param callable(Job, callable(Job): void): void $middleware
     */
    public function use(callable $middleware): static
    {
        $this->middleware[] = $middleware;
        return $this;
    }

    /** Is called in each process when it starts: the place for connections to databases. */
    public function onProcessStart(callable $callback): static
    {
        $this->starters[] = $callback;
        return $this;
    }

    /**
     * Works until it is stopped by stop(), SIGTERM or SIGINT; then handlers have `grace` to finish. When it returns,
     * every result has reached the server.
     *
     * @throws DelayqException if the server refuses to hand out jobs: `unauthorized`, `forbidden`, `invalid`
     */
    public function run(): void
    {
        if (!function_exists('pcntl_fork') || !function_exists('posix_kill')) {
            throw new DelayqException('invalid', 'a worker needs the extensions pcntl and posix');
        }
        if ($this->handlers === [] || $this->dispatcher !== null) {
            throw new DelayqException('invalid', $this->dispatcher === null ? 'a worker needs a handler: call handle()' : 'the worker runs already');
        }
        Dispatcher::inOrder(array_map('strval', array_keys($this->handlers)));
        $this->client->close();
        $this->dispatcher = new Dispatcher(
            $this->client->settings(),
            array_map('strval', array_keys($this->handlers)),
            $this->concurrency,
            $this->leaseMs,
            (float) $this->wait,
            (float) $this->grace,
            $this->logger ?? new StderrLog(),
            $this->runProcess(...),
        );
        $wasAsync = pcntl_async_signals(true);
        $before = [];
        foreach ([SIGTERM, SIGINT] as $signal) {
            $before[$signal] = pcntl_signal_get_handler($signal);
            pcntl_signal($signal, fn () => $this->stop(), false);
        }
        try {
            $this->dispatcher->run();
        } finally {
            array_walk($before, static fn (mixed $handler, int $signal) => pcntl_signal($signal, $handler));
            pcntl_async_signals($wasAsync);
            $this->dispatcher = null;
        }
    }

    /** Asks the worker to stop. May be called from a handler and from a signal handler. Returns at once. */
    public function stop(): void
    {
        $this->process?->stopWorker();
        $this->dispatcher?->requestStop();
    }

    private function runProcess(Channel $channel): never
    {
        $this->dispatcher = null;
        array_map(static fn (callable $callback) => $callback(), $this->starters);
        $this->process = new HandlerProcess($channel, $this->runHandler(...), $this->jobsPerProcess);
        $this->process->run();
    }

    private function runHandler(Job $job): void
    {
        $next = $this->handlers[$job->topic];
        foreach (array_reverse($this->middleware) as $middleware) {
            $next = static fn (Job $job) => $middleware($job, $next);
        }
        $next($job);
    }
}
