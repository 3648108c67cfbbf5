<?php

declare(strict_types=1);

namespace Delayq;

use Delayq\Internal\Connection;
use Delayq\Internal\DelayQVerbs;
use Delayq\Internal\Ids;
use Delayq\Internal\Settings;
use Delayq\Internal\Time;
use Delayq\Internal\Words;

/**
 * Stores jobs for later, cancels and moves them, and keeps schedules.
 *
 * A function that has returned has done its work, durably; all of them throw DelayqException. A lost connection is
 * opened again, and what is safe to send twice is sent again for up to `retryFor` seconds. A client may be used
 * after a fork: the child opens a connection of its own.
 *
 * Durations are seconds (int or float), texts such as `"30m"`, or a DateInterval. Moments are Unix seconds or a
 * DateTimeInterface. A payload is a string of any bytes; everything else is stored as JSON.
 */
final class Client
{
    use DelayQVerbs;

    public const DEFAULT_PORT = 9278;

    private const FIRST_PAUSE = 0.05;
    private const LONGEST_PAUSE = 2.0;
    /** enqueueMany() keeps so many jobs until they are stored. */
    private const SLICE = 20_000;

    private readonly Settings $settings;
    private readonly Ids $ids;
    private ?Connection $connection = null;
    private int $pid;
    /** @var list<Connection> of the process that this one was forked from */
    private array $foreign = [];
    /** @var \WeakMap<\Fiber, true>|null the calls of together() */
    private ?\WeakMap $gathered = null;

    /**
     * Connects with the first call.
     *
     * @param string|array<string, mixed> $server "host:port" (the server's RESP port), or an array with `host`,
     *                                            `port` and `password` (the token) as DelayQ's client takes it
     * @param string|null $token      of a server with tokens
     * @param string|null $tokenName  if given, it must be the name of the token
     * @param bool|array<string, mixed> $tls true, or options of PHP's ssl context such as `['cafile' => ...]`
     * @param float $connectTimeout   seconds
     * @param float $timeout          how many seconds to wait for an answer; what a pop waits is added
     * @param float $retryFor         how many seconds a call goes on trying while the server is away or refuses
     *                                with a retryable error; 0: never
     */
    public function __construct(
        string|array $server = '127.0.0.1:9278',
        #[\SensitiveParameter] ?string $token = null,
        ?string $tokenName = null,
        bool|array $tls = false,
        float $connectTimeout = 5.0,
        float $timeout = 30.0,
        float $retryFor = 15.0,
    ) {
        if (is_array($server)) {
            $host = (string) ($server['host'] ?? '127.0.0.1');
            $port = (int) ($server['port'] ?? self::DEFAULT_PORT);
            $token ??= ($server['password'] ?? '') === '' ? null : (string) $server['password'];
        } else {
            if (preg_match('/^(?:\[(.+)\]|([^:\/]+))(?::(\d{1,5}))?$/', $server, $found, PREG_UNMATCHED_AS_NULL) !== 1) {
                throw new DelayqException('invalid', "server: \"$server\" is not host:port");
            }
            $host = $found[1] ?? $found[2];
            $port = (int) ($found[3] ?? self::DEFAULT_PORT);
        }
        $this->settings = new Settings($host, $port, $token, $tokenName, $tls === false ? null : ($tls === true ? [] : $tls), $connectTimeout, $timeout, $retryFor);
        $this->ids = new Ids();
        $this->pid = getmypid();
    }

    // ---- producers

    /**
     * Stores a job and returns its id. Without a time it is due at once. The same id again replaces the job,
     * unless `onConflict` says otherwise.
     *
     * @param string|null $id   null: a UUID of version 7
     * @param mixed $payload    a string, or anything that can be JSON
     * @param int|float|string|\DateInterval|null $processIn  the delay
     * @param int|float|\DateTimeInterface|null $processAt    the moment; a past one means at once
     * @param string|null $group      for cancelGroup()
     * @param int|null $priority      a lower number is handed out first; 1024 is the usual one
     * @param int|null $retry         how often the job is tried in all; 0: no limit
     * @param int|float|string|array|null $backoff between attempts: seconds, a list of them, `"10s,1m,10m"`,
     *                                             `"exponential:1s:2:1h:0.1"`
     * @param int|float|string|\DateInterval|null $timeout    the lease: how long one attempt may be silent
     * @param array<string, string> $headers
     * @param string|null $callback   a URL that the server calls instead of handing the job to a worker
     * @param string $onConflict      if the id is in use by a waiting or running job: `replace`, `keep`, `reject`
     */
    public function enqueue(
        string $topic,
        ?string $id,
        mixed $payload,
        int|float|string|\DateInterval|null $processIn = null,
        int|float|\DateTimeInterface|null $processAt = null,
        ?string $group = null,
        ?int $priority = null,
        ?int $retry = null,
        int|float|string|array|null $backoff = null,
        int|float|string|\DateInterval|null $timeout = null,
        array $headers = [],
        ?string $callback = null,
        string $onConflict = 'replace',
    ): string {
        $job = compact('topic', 'id', 'payload', 'processIn', 'processAt', 'group', 'priority', 'retry', 'backoff', 'timeout', 'headers', 'callback', 'onConflict');
        $this->noticeFork();
        $command = $this->encodeJob($job, $id, $isSafe);
        $this->ask($command, $isSafe);
        return $id;
    }

    /**
     * Stores many jobs, each an array with the names of enqueue()'s parameters:
     * `['topic' => 'order', 'id' => '1', 'payload' => $order, 'processIn' => 1800]`.
     *
     * @param iterable<array<string, mixed>> $jobs
     * @return array<string|DelayqException> with the keys of `$jobs`: the id, or why the job was not stored
     */
    public function enqueueMany(iterable $jobs): array
    {
        $this->noticeFork();
        $results = [];
        $jobs = is_array($jobs) ? new \ArrayIterator($jobs) : (static fn () => yield from $jobs)();
        while ($jobs->valid()) {
            $this->enqueueSlice($jobs, $results);
        }
        return $results;
    }

    /**
     * @param \Iterator<array<string, mixed>> $jobs
     * @param array<string|DelayqException>   $results
     */
    private function enqueueSlice(\Iterator $jobs, array &$results): void
    {
        $commands = $unsafe = $keys = [];
        $source = (function () use ($jobs, &$results, &$commands, &$unsafe, &$keys): \Generator {
            for ($count = 0; $count < self::SLICE && $jobs->valid(); ++$count, $jobs->next()) {
                $key = $jobs->key();
                try {
                    $command = $this->encodeJob($jobs->current(), $results[$key], $isSafe);
                } catch (DelayqException|\TypeError $problem) {
                    $results[$key] = $problem instanceof DelayqException ? $problem : new DelayqException('invalid', $problem->getMessage(), null, $problem);
                    continue;
                }
                if (!$isSafe) {
                    $unsafe[count($keys)] = true;
                }
                $keys[] = $key;
                yield $commands[] = $command;
            }
        })();
        foreach ($this->exchange($source, $commands, $unsafe) as $i => $reply) {
            if ($reply instanceof DelayqException) {
                $results[$keys[$i]] = $reply;
            }
        }
    }

    /**
     * Makes calls at the same time: their commands go to the server together, and what they store is one commit.
     * `$client->together(fn () => $client->enqueue(...), fn () => $client->get(...))`
     *
     * @param callable ...$calls each may use this client once or several times
     * @return array<mixed> with the keys of `$calls`: what each returned, or its DelayqException
     */
    public function together(callable ...$calls): array
    {
        $results = array_fill_keys(array_keys($calls), null);
        $outer = $this->gathered;
        $waiting = [];
        $step = function (int|string $key, \Fiber $fiber, \Closure $go) use (&$results, &$waiting): void {
            try {
                $asked = $go();
                if ($fiber->isTerminated()) {
                    $results[$key] = $fiber->getReturn();
                } else {
                    $waiting[$key] = [$fiber, $asked];
                }
            } catch (DelayqException $problem) {
                $results[$key] = $problem;
            }
        };
        try {
            $this->gathered = new \WeakMap();
            foreach ($calls as $key => $call) {
                $fiber = new \Fiber($call);
                $this->gathered[$fiber] = true;
                $step($key, $fiber, $fiber->start(...));
            }
            while ($waiting !== []) {
                $asked = array_values($waiting);
                $keys = array_keys($waiting);
                $waiting = [];
                $commands = array_map(static fn (array $one): string => $one[1][0], $asked);
                $unsafe = array_filter(array_map(static fn (array $one): bool => !$one[1][1], $asked));
                $replies = $this->exchange(new \ArrayIterator($commands), $commands, $unsafe);
                foreach ($replies as $i => $reply) {
                    $fiber = $asked[$i][0];
                    $go = $reply instanceof DelayqException ? static fn () => $fiber->throw($reply) : static fn () => $fiber->resume($reply);
                    $step($keys[$i], $fiber, $go);
                }
            }
        } finally {
            $this->gathered = $outer;
        }
        return $results;
    }

    /**
     * Cancels a job. Returns what it has found: `cancelled` (it waited, and is gone), `reserved` (it is running: it
     * runs to its end, and is not retried), `done`, `dead` or `unknown`.
     */
    public function dequeue(string $topic, string $id): string
    {
        return self::expect('is_string', $this->command(['CANCEL', $topic, $id], false));
    }

    /** Cancels all waiting jobs of a group, in all topics; running ones are not retried. Returns how many. */
    public function cancelGroup(string $group): int
    {
        return self::expect('is_int', $this->command(['CANCELGROUP', $group], false));
    }

    /** Moves a delayed, ready or dead job to another time. */
    public function reschedule(
        string $topic,
        string $id,
        int|float|string|\DateInterval|null $processIn = null,
        int|float|\DateTimeInterface|null $processAt = null,
    ): void {
        if (($processIn === null) === ($processAt === null)) {
            throw new DelayqException('invalid', 'processIn and processAt: give one of them');
        }
        $time = $processAt === null ? [Time::duration($processIn, 'processIn')] : ['AT', Time::moment($processAt, 'processAt')];
        $this->command(['RESCHEDULE', $topic, $id, ...$time], false);
    }

    /** A job, or null if there is none. Done and dead jobs are kept for a while. */
    public function get(string $topic, string $id): ?StoredJob
    {
        $reply = $this->command(['GET', $topic, $id]);
        return $reply === null ? null : StoredJob::fromReply(self::map($reply, ['topic', 'id', 'state', 'body', 'due_ms', 'pushed_ms', 'attempts', 'priority']));
    }

    // ---- schedules

    /**
     * Makes a job at every interval. A schedule of this name is changed.
     *
     * @param int|float|\DateTimeInterface|null $start the first occurrence; null: one interval from now
     * @param int|float|\DateTimeInterface|null $end   no occurrence after this moment
     * @param int|null $runs    how many jobs are made in all
     * @param int|float|string|\DateInterval|null $jitter each job is due up to so much later
     * @param string|null $overlap if the job before is still there: `allow`, `skip`, `replace`
     * @param string|null $missed  occurrences that were not made in time: `one`, `skip`, `all`
     */
    public function every(
        string $name,
        int|float|string|\DateInterval $interval,
        string $topic,
        mixed $payload,
        int|float|\DateTimeInterface|null $start = null,
        int|float|\DateTimeInterface|null $end = null,
        ?int $runs = null,
        int|float|string|\DateInterval|null $jitter = null,
        ?string $overlap = null,
        ?string $missed = null,
        ?string $group = null,
        ?int $priority = null,
        ?int $retry = null,
        int|float|string|array|null $backoff = null,
        int|float|string|\DateInterval|null $timeout = null,
        array $headers = [],
        ?string $callback = null,
    ): Schedule {
        $rule = ['EVERY', Time::duration($interval, 'interval')];
        return $this->setSchedule($name, $rule, $topic, $payload, compact('start', 'end', 'runs', 'jitter', 'overlap', 'missed'), compact('group', 'priority', 'retry', 'backoff', 'timeout', 'headers', 'callback'));
    }

    /**
     * Makes a job whenever a cron rule says so. The options are those of every().
     *
     * @param string $rule      such as `"0 2 * * *"`
     * @param string|null $zone such as `"Asia/Shanghai"`; null: UTC
     */
    public function cron(
        string $name,
        string $rule,
        string $topic,
        mixed $payload,
        ?string $zone = null,
        int|float|\DateTimeInterface|null $start = null,
        int|float|\DateTimeInterface|null $end = null,
        ?int $runs = null,
        int|float|string|\DateInterval|null $jitter = null,
        ?string $overlap = null,
        ?string $missed = null,
        ?string $group = null,
        ?int $priority = null,
        ?int $retry = null,
        int|float|string|array|null $backoff = null,
        int|float|string|\DateInterval|null $timeout = null,
        array $headers = [],
        ?string $callback = null,
    ): Schedule {
        return $this->setSchedule($name, ['CRON', $rule], $topic, $payload, compact('zone', 'start', 'end', 'runs', 'jitter', 'overlap', 'missed'), compact('group', 'priority', 'retry', 'backoff', 'timeout', 'headers', 'callback'));
    }

    /** @param list<string> $rule */
    private function setSchedule(string $name, array $rule, string $topic, mixed $payload, array $schedule, array $job): Schedule
    {
        return self::schedule($this->command([
            'SCHEDULE', 'SET', $name, ...$rule, 'TOPIC', $topic, 'BODY', Words::payload($payload), ...Words::schedule($schedule), ...Words::job($job),
        ]));
    }

    public function getSchedule(string $name): ?Schedule
    {
        $reply = $this->command(['SCHEDULE', 'GET', $name]);
        return $reply === null ? null : self::schedule($reply);
    }

    /** Removes a schedule. The jobs that it has made stay. It is not sent again when its answer is lost. */
    public function removeSchedule(string $name): void
    {
        $this->command(['SCHEDULE', 'DEL', $name], false);
    }

    public function pauseSchedule(string $name): Schedule
    {
        return self::schedule($this->command(['SCHEDULE', 'PAUSE', $name]));
    }

    public function resumeSchedule(string $name): Schedule
    {
        return self::schedule($this->command(['SCHEDULE', 'RESUME', $name]));
    }

    /** Makes a job now, in addition to the occurrences. It is not sent again when its answer is lost. */
    public function runSchedule(string $name): ScheduleRun
    {
        $reply = self::map($this->command(['SCHEDULE', 'RUN', $name], false), ['topic', 'id', 'state', 'due_ms']);
        return new ScheduleRun($reply['topic'], $reply['id'], $reply['state'], Time::fromMillis($reply['due_ms']));
    }

    /**
     * The next occurrences of a schedule (`name`), or of a rule that is not stored: `rule` with `zone`, or
     * `interval`, from the moment `from` on.
     *
     * @param int|null $count 5 unless given, at most 1000
     * @return list<Occurrence>
     */
    public function next(
        ?string $name = null,
        ?string $rule = null,
        ?string $zone = null,
        int|float|string|\DateInterval|null $interval = null,
        int|float|\DateTimeInterface|null $from = null,
        ?int $count = null,
    ): array {
        if (($name !== null) + ($rule !== null) + ($interval !== null) !== 1) {
            throw new DelayqException('invalid', 'name, rule, interval: give one of them');
        }
        $which = $name !== null ? ['NAME', $name] : ($rule !== null ? ['CRON', $rule] : ['EVERY', Time::duration($interval, 'interval')]);
        $reply = $this->command(['SCHEDULE', 'NEXT', ...$which, ...Words::schedule(compact('zone', 'from', 'count'))]);
        return array_map(static function (mixed $one): Occurrence {
            self::map($one, [0, 1]);
            return new Occurrence(Time::fromMillis(self::expect('is_int', $one[0])), self::expect('is_string', $one[1]));
        }, self::map($reply, []));
    }

    /** The reply, if it is of the type that it should have. */
    private static function expect(callable $isType, mixed $reply): mixed
    {
        return $isType($reply) ? $reply : throw new DelayqException('internal', 'the server sent something that is no answer to this call');
    }

    /** @param list<string|int> $keys that it must have */
    private static function map(mixed $reply, array $keys): array
    {
        self::expect('is_array', $reply);
        self::expect('boolval', array_diff($keys, array_keys($reply)) === []);
        return $reply;
    }

    private static function schedule(mixed $reply): Schedule
    {
        return Schedule::fromReply(self::map($reply, ['name']));
    }

    // ---- the connection

    /** Closes the connection. The next call opens it again. */
    public function close(): void
    {
        $this->connection?->close();
        $this->connection = null;
    }

    /** @internal */
    public function settings(): Settings
    {
        return $this->settings;
    }

    /**
     * A PUSH as it is on the wire.
     *
     * @param array<string, mixed> $job
     * @param-out string $id
     * @param-out bool $isSafe may it be sent twice
     */
    private function encodeJob(array $job, ?string &$id, ?bool &$isSafe): string
    {
        $topic = $job['topic'] ?? throw new DelayqException('invalid', 'topic: it is missing');
        $payload = $job['payload'] ?? null;
        $id = (string) ($job['id'] ?? '');
        $isSafe = true;
        if ($id === '') {
            $id = $this->ids->next();
        } else {
            // The answer to a second one would be about the first.
            $isSafe = ($job['onConflict'] ?? '') !== 'reject';
        }
        if (($running = Job::running()) !== null) {
            $job['headers'] = self::withTrace($job['headers'] ?? [], $running->headers);
        }
        return Words::push($topic, $id, is_string($payload) ? $payload : Words::payload($payload), $job);
    }

    /** Hands the trace context of the running job on to a job that its handler makes. */
    private static function withTrace(array $headers, array $running): array
    {
        if (!isset($running['traceparent']) || isset(array_change_key_case($headers)['traceparent'])) {
            return $headers;
        }
        $headers['traceparent'] = $running['traceparent'];
        if (isset($running['tracestate']) && !isset(array_change_key_case($headers)['tracestate'])) {
            $headers['tracestate'] = $running['tracestate'];
        }
        return $headers;
    }

    /** @param list<string> $words */
    private function command(array $words, bool $isSafe = true, float $wait = 0.0): mixed
    {
        return $this->ask(Connection::encode($words), $isSafe, $wait);
    }

    private function ask(string $command, bool $isSafe, float $wait = 0.0): mixed
    {
        $fiber = \Fiber::getCurrent();
        if ($fiber !== null && $wait === 0.0 && isset($this->gathered[$fiber])) {
            return \Fiber::suspend([$command, $isSafe]);
        }
        $commands = [$command];
        $unsafe = $isSafe ? [] : [true];
        $reply = $this->exchange(new \ArrayIterator($commands), $commands, $unsafe, $wait)[0];
        if ($reply instanceof DelayqException) {
            throw $reply;
        }
        return $reply;
    }

    /**
     * Sends commands, and again those that failed and may be sent again. Returns the replies in their order.
     *
     * @param \Iterator<string> $source   the commands; it may fill `$commands` and `$unsafe` while it runs
     * @param list<string>      $commands
     * @param array<int, true>  $unsafe   which may not be sent twice
     * @return array<int, mixed>
     */
    private function exchange(\Iterator $source, array &$commands, array &$unsafe, float $wait = 0.0): array
    {
        $results = [];
        $deadline = Time::now() + $this->settings->retryFor;
        $pause = 0.0;
        $todo = null;  // the numbers of the commands of this round; null: all, in the first one
        while (true) {
            $replies = [];
            $lost = null;
            $isReused = $this->connection !== null;
            $connection = null;
            try {
                $connection = $this->takeConnection();
                $errors = $connection->exchange($source, $replies, $this->settings->timeout + $wait);
                $this->connection ??= $connection;
                if ($errors === 0 && $todo === null) {
                    return $replies;
                }
            } catch (DelayqException $lost) {
                while ($source->valid()) {  // those that were not reached, too, have an answer
                    $source->next();
                }
            } finally {
                if ($connection !== null && $this->connection !== $connection) {
                    $connection->close();
                }
            }
            $again = [];
            $after = 0.0;
            $answered = count($replies);
            foreach ($todo ?? array_keys($commands) as $i => $number) {
                $reply = $i < $answered ? $replies[$i] : $lost;
                $results[$number] = $reply;
                if ($reply instanceof DelayqException && $reply->retryable) {
                    $isUntouched = $i < $answered ? $reply->getCode() !== 'unavailable' : $connection === null;
                    if ($isUntouched || !isset($unsafe[$number])) {
                        $again[] = $number;
                        $after = max($after, $reply->retryAfter ?? 0.0);
                    } elseif ($i >= $answered) {
                        $results[$number] = new DelayqException('unavailable', "{$reply->getMessage()}; it may have been carried out, so it is not sent again", null, $reply);
                    }
                }
            }
            // A connection that was idle may have been closed long ago: that is no reason to wait.
            $pause = $lost !== null && $isReused && $pause === 0.0 ? 0.001 : min(self::LONGEST_PAUSE, max(self::FIRST_PAUSE, $pause * 2));
            $sleep = max($after, $pause * (0.75 + 0.5 * lcg_value()));
            if ($again === [] || Time::now() + $sleep > $deadline) {
                return $results;
            }
            usleep((int) ($sleep * 1e6));
            $todo = $again;
            $source = new \ArrayIterator(array_map(static fn (int $number): string => $commands[$number], $again));
        }
    }

    /**
     * The connection, which is nobody else's until it is given back: a call in the middle of another one (of a
     * generator of jobs, of a signal handler) opens its own.
     */
    private function takeConnection(): Connection
    {
        $this->noticeFork();
        $connection = $this->connection ?? Connection::open($this->settings);
        $this->connection = null;
        return $connection;
    }

    /** After a fork the connection is the parent's. It is kept open, since closing a TLS connection would end both. */
    private function noticeFork(): void
    {
        if ($this->pid === getmypid()) {
            return;
        }
        $this->pid = getmypid();
        $this->ids->forget();
        $this->leases = [];
        if ($this->connection !== null) {
            $this->foreign[] = $this->connection;
            $this->connection = null;
        }
    }
}
