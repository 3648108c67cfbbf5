<?php

declare(strict_types=1);

namespace Delayq\Tests;

use Delayq\Client;
use Delayq\Dead;
use Delayq\DelayqException;
use Delayq\Job;
use Delayq\LogFiles;
use Delayq\Occurrence;
use Delayq\RetryIn;
use Delayq\Schedule;
use Delayq\ScheduleRun;
use Delayq\StoredJob;
use Delayq\Worker;

/**
 * Carries out one scenario: the steps that sdk/spec/README.md describes.
 */
final class Scenario
{
    private const JOB = ['topic', 'id', 'payload', 'process_in', 'process_at', 'priority', 'retry', 'backoff', 'timeout', 'group', 'callback', 'headers', 'on_conflict'];
    private const SCHEDULE = ['name', 'topic', 'payload', 'start', 'end', 'runs', 'jitter', 'overlap', 'missed', 'priority', 'retry', 'backoff', 'timeout', 'group', 'callback', 'headers'];
    private const VERBS = [
        'enqueue' => self::JOB,
        'enqueue_many' => ['jobs'],
        'dequeue' => ['topic', 'id'],
        'cancel_group' => ['group'],
        'reschedule' => ['topic', 'id', 'process_in', 'process_at'],
        'get' => ['topic', 'id'],
        'every' => [...self::SCHEDULE, 'interval'],
        'cron' => [...self::SCHEDULE, 'rule', 'zone'],
        'get_schedule' => ['name'],
        'remove_schedule' => ['name'],
        'pause_schedule' => ['name'],
        'resume_schedule' => ['name'],
        'run_schedule' => ['name'],
        'next' => ['name', 'rule', 'zone', 'interval', 'from', 'from_at', 'count'],
        'together' => ['steps'],
        'work' => ['options', 'handlers'],
        // in handlers
        'job' => [], 'signal' => ['name'], 'wait' => ['name'], 'wait_cancelled' => ['reason'], 'stop' => [],
        'fail' => ['text'], 'retry_in' => ['delay', 'text'], 'dead' => ['reason'],
    ];
    private const DURATIONS = ['process_in', 'timeout', 'interval', 'jitter', 'delay', 'retry_for', 'connect_timeout', 'lease', 'wait', 'grace'];
    private const MOMENTS = ['process_at', 'start', 'end', 'from'];
    private const NEAR_MS = 20_000;
    private const WORK_SECONDS = 60.0;

    /** @var array<string, Client> */
    private array $clients = [];
    /** @var array<string, mixed> */
    private array $saved = [];
    /** The directory through which the processes of a worker know of each other. */
    private string $work = '';
    private ?Worker $worker = null;

    /**
     * @param object $server a Server, or what has a directory and client(), too
     * @param array<string, \stdClass> $clientOptions
     */
    public function __construct(private readonly object $server, array $clientOptions)
    {
        foreach ($clientOptions as $name => $options) {
            self::checkKeys($options, ['token', 'token_name', 'retry_for', 'timeout', 'connect_timeout', 'tls'], "client $name");
            $this->clients[$name] = $server->client(...self::arguments($options));
        }
        $this->clients[''] = $server->client();
    }

    /** @param list<string> $known */
    public static function checkKeys(\stdClass $object, array $known, string $where): void
    {
        $unknown = array_diff(array_keys((array) $object), $known);
        if ($unknown !== []) {
            throw new \LogicException("$where: unknown: " . implode(', ', $unknown));
        }
    }

    /** @param list<\stdClass> $steps */
    public function run(array $steps, ?Job $job = null): void
    {
        foreach ($steps as $step) {
            $this->step($step, $job);
        }
    }

    private function step(\stdClass $step, ?Job $job): void
    {
        $verb = $step->do;
        $known = self::VERBS[$verb] ?? throw new \LogicException("unknown verb $verb");
        self::checkKeys($step, ['do', 'result', 'error', 'message', 'retryable', 'save', 'client', ...$known], $verb);
        foreach ([$step, ...($verb === 'enqueue_many' ? $step->jobs : [])] as $one) {
            self::checkKeys($one, $one === $step ? array_keys((array) $step) : self::JOB, 'jobs');
            $payload = $one->payload ?? '';
            self::expect(!$payload instanceof \stdClass || in_array(array_keys((array) $payload), [['base64'], ['repeat', 'times'], ['json']], true), 'an unknown value');
        }
        $client = $this->clients[$step->client ?? ''];
        $input = $this->value(array_diff_key((array) $step, array_flip(['do', 'result', 'error', 'message', 'retryable', 'save', 'client'])));
        $where = json_encode($step, JSON_UNESCAPED_UNICODE | JSON_PARTIAL_OUTPUT_ON_ERROR);
        if ($job !== null && $this->inHandler($verb, $input, $step, $job)) {
            return;
        }
        try {
            $result = self::plain($this->call($verb, $client, $input));
        } catch (DelayqException $error) {
            self::expect(isset($step->error), "$where failed: {$error->getCode()}: {$error->getMessage()}");
            self::expect($error->getCode() === $step->error, "$where: {$error->getCode()}: {$error->getMessage()}");
            $text = $step->message ?? '';
            self::expect(str_contains($error->getMessage(), $text) || str_contains($error->getMessage(), self::camel($text)), "$where: {$error->getMessage()}");
            self::expect(!isset($step->retryable) || $step->retryable === $error->retryable, "$where: retryable");
            return;
        }
        self::expect(!isset($step->error), "$where did not fail");
        if (property_exists($step, 'result')) {
            $this->match($step->result, $result, $where);
        }
        if (isset($step->save)) {
            $this->saved[$step->save] = $result;
        }
    }

    /** @param array<string, mixed> $in */
    private function call(string $verb, Client $client, array $in): mixed
    {
        $in += $verb === 'enqueue' ? ['id' => null] : [];
        return match ($verb) {
            'enqueue_many' => $client->enqueueMany(array_map(static fn (\stdClass $job): array => self::arguments($job), $in['jobs'])),
            'together' => $this->together($client, $in['steps']),
            'work' => $this->work($client, $in),
            'next' => $client->next(...self::arguments(isset($in['from_at']) ? ['from' => new \DateTimeImmutable($in['from_at'])] + array_diff_key($in, ['from_at' => 0]) : $in)),
            default => $client->{self::camel($verb)}(...self::arguments($in)),
        };
    }

    /** @param list<\stdClass> $steps */
    private function together(Client $client, array $steps): void
    {
        $results = $client->together(...array_map(fn (\stdClass $step): \Closure => fn () => $this->step($step, null), $steps));
        self::expect(array_unique($results, SORT_REGULAR) === [null], 'together: ' . json_encode($results));
    }

    // ---- a worker

    /** @param array<string, mixed> $in */
    private function work(Client $client, array $in): void
    {
        $this->work = "{$this->server->directory}/work-" . bin2hex(random_bytes(4));
        mkdir($this->work);
        self::checkKeys($in['options'] ?? new \stdClass(), ['concurrency', 'lease', 'wait', 'grace'], 'options of work');
        $this->worker = new Worker($client, ...self::arguments($in['options'] ?? []), logger: new LogFiles("$this->work/logs"));
        $handlers = (array) $in['handlers'];
        $lists = array_sum(array_map('count', $handlers));
        foreach ($handlers as $topic => $runs) {
            $this->worker->handle((string) $topic, fn (Job $job) => $this->handle($job, $runs, $lists));
        }
        $isLate = false;
        pcntl_signal(SIGALRM, function () use (&$isLate): void {
            $isLate = true;
            $this->worker->stop();
        });
        pcntl_alarm((int) self::WORK_SECONDS);
        try {
            $this->worker->run();
        } finally {
            pcntl_alarm(0);
            pcntl_signal(SIGALRM, SIG_DFL);
            $this->worker = null;
        }
        $problems = glob("$this->work/problem-*");
        self::expect($problems === [], implode("\n", array_map('file_get_contents', $problems)));
        self::expect(!$isLate, 'the worker did not come to its end');
        self::expect($this->count('finished', 0) === $lists, 'not all lists were carried out');
    }

    /** @param list<list<\stdClass>> $runs */
    private function handle(Job $job, array $runs, int $lists): void
    {
        $number = $this->count('run-' . bin2hex($job->topic)) - 1;
        try {
            self::expect(isset($runs[$number]), "topic $job->topic: one run more than there are lists");
            $this->run($runs[$number], $job);
        } catch (HandlerEnd $end) {
            if ($this->count('finished') === $lists) {
                $this->worker->stop();
            }
            throw $end->getPrevious();
        } catch (\Throwable $problem) {
            file_put_contents("$this->work/problem-" . bin2hex(random_bytes(4)), (string) $problem);
            $this->worker->stop();
            return;
        }
        if ($this->count('finished') === $lists) {
            $this->worker->stop();
        }
    }

    /** Adds to a number that all processes share, and returns it. */
    private function count(string $name, int $add = 1): int
    {
        $file = fopen("$this->work/$name", 'c+');
        flock($file, LOCK_EX);
        $number = (int) stream_get_contents($file) + $add;
        rewind($file);
        fwrite($file, (string) $number);
        fclose($file);
        return $number;
    }

    /** @param array<string, mixed> $in */
    private function inHandler(string $verb, array $in, \stdClass $step, Job $job): bool
    {
        switch ($verb) {
            case 'job':
                $got = [
                    'topic' => $job->topic, 'id' => $job->id, 'payload' => $job->payload, 'attempt' => $job->attempt,
                    'due_at' => $job->dueAt, 'headers' => $job->headers,
                ] + (isset($step->result->lease_until) ? ['lease_until' => $job->leaseUntil()] : []);
                $this->match($step->result, self::plain($got), "job in $job->topic");
                return true;
            case 'signal':
                touch("$this->work/signal-{$in['name']}");
                return true;
            case 'wait':
                $deadline = microtime(true) + self::WORK_SECONDS;
                while (!file_exists("$this->work/signal-{$in['name']}")) {
                    self::expect(microtime(true) < $deadline, "no signal {$in['name']}");
                    usleep(5_000);
                    clearstatcache();
                }
                return true;
            case 'wait_cancelled':
                $reason = $job->stopReason(self::WORK_SECONDS);
                self::expect($reason === $in['reason'], "told to stop because of: $reason");
                return true;
            case 'stop':
                $this->worker->stop();
                return true;
            case 'fail':
                throw new HandlerEnd('', 0, new \RuntimeException($in['text']));
            case 'retry_in':
                throw new HandlerEnd('', 0, new RetryIn($in['delay'] / 1000, $in['text'] ?? ''));
            case 'dead':
                throw new HandlerEnd('', 0, new Dead($in['reason']));
        }
        return false;
    }

    // ---- values

    private static function camel(string $name): string
    {
        return lcfirst(str_replace('_', '', ucwords($name, '_')));
    }

    /** The arguments of a call, with the names and units of this library. */
    private static function arguments(array|\stdClass $in): array
    {
        $out = [];
        foreach ((array) $in as $name => $value) {
            if (in_array($name, self::DURATIONS, true)) {
                $value /= 1000;
            } elseif (in_array($name, self::MOMENTS, true) && is_int($value)) {
                $value = microtime(true) + $value / 1000;
            } elseif ($name === 'headers') {
                $value = (array) $value;
            }
            $out[self::camel($name)] = $value;
        }
        return $out;
    }

    /** Replaces the special values of a step. */
    private function value(mixed $value): mixed
    {
        if (is_string($value) && str_starts_with($value, '$')) {
            return $this->saved[substr($value, 1)];
        }
        if ($value instanceof \stdClass) {
            $keys = array_keys((array) $value);
            if ($keys === ['base64']) {
                return base64_decode($value->base64, true);
            }
            if ($keys === ['repeat', 'times']) {
                return str_repeat($value->repeat, $value->times);
            }
            if ($keys === ['json']) {
                return is_string($value->json) ? json_encode($value->json) : $value->json;
            }
            return (object) array_map($this->value(...), (array) $value);
        }
        return is_array($value) ? array_map($this->value(...), $value) : $value;
    }

    /** What a verb has returned, in the form of the specification. */
    private static function plain(mixed $value): mixed
    {
        if ($value instanceof \DateTimeInterface) {
            return (int) $value->format('Uv');
        }
        if ($value instanceof DelayqException) {
            return ['error' => $value->getCode()];
        }
        if ($value instanceof Schedule || $value instanceof StoredJob || $value instanceof ScheduleRun || $value instanceof Occurrence) {
            $plain = [];
            foreach (get_object_vars($value) as $name => $item) {
                $isSeconds = $value instanceof Schedule && in_array($name, ['every', 'jitter', 'timeout'], true) && $item !== null;
                $plain[strtolower(preg_replace('/[A-Z]/', '_$0', $name))] = $isSeconds ? (int) round($item * 1000) : self::plain($item);
            }
            return $plain;
        }
        return is_array($value) ? array_map(self::plain(...), $value) : $value;
    }

    private static function expect(bool $isTrue, string $what): void
    {
        if (!$isTrue) {
            throw new \LogicException($what);
        }
    }

    private function match(mixed $expected, mixed $got, string $where): void
    {
        $said = json_encode($got, JSON_UNESCAPED_UNICODE | JSON_PARTIAL_OUTPUT_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE);
        $said = strlen((string) $said) > 2000 ? substr($said, 0, 2000) . '...' : $said;
        if ($expected instanceof \stdClass) {
            $items = (array) $expected;
            $key = count($items) === 1 ? array_key_first($items) : '';
            $isMatch = match ($key) {
                'near' => is_int($got) && abs($got - (microtime(true) * 1000 + $items[$key])) <= self::NEAR_MS,
                'uuid' => is_string($got) && preg_match("/^[0-9a-f]{8}-[0-9a-f]{4}-{$items[$key]}[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/", $got) === 1,
                'contains' => is_string($got) && str_contains($got, $this->value($items[$key])),
                'bytes_at_most' => is_string($got) && strlen($got) <= $items[$key],
                'base64' => $got === base64_decode($items[$key], true),
                'json' => is_string($got) && json_decode($got) == $items[$key],
                default => null,
            };
            $isMatch ??= array_keys($items) === ['repeat', 'times'] ? $got === $this->value($expected) : null;
            if ($isMatch === null) {
                self::expect(is_array($got), "$where: got $said");
                foreach ($items as $name => $item) {
                    $this->match($item, $got[$name] ?? null, "$where: $name");
                }
                return;
            }
            self::expect($isMatch, "$where: got $said");
        } elseif (is_array($expected)) {
            self::expect(is_array($got) && count($got) === count($expected), "$where: got $said");
            foreach ($expected as $i => $item) {
                $this->match($item, $got[$i], "$where: $i");
            }
        } else {
            self::expect($got === $this->value($expected), "$where: got $said");
        }
    }
}

/** A handler is to end with the previous exception. */
final class HandlerEnd extends \Exception
{
}
