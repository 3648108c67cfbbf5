<?php

declare(strict_types=1);

namespace Delayq\Internal;

use Delayq\DelayqException;

/**
 * The worker's own process: takes jobs, hands them to the processes that run handlers, extends leases and reports
 * results. One loop over select().
 *
 * It has two connections: one on which pops wait, and one for everything else, which therefore never waits.
 *
 * @internal
 */
final class Dispatcher
{
    /** Jobs are taken ahead for so many seconds of work: handlers of milliseconds then need not wait for a pop. */
    private const AHEAD = 0.01;
    private const MOST_AHEAD = 1_000;
    /** A lease whose length is not known is looked at after so many seconds: less than a third of the shortest lease. */
    private const LEARN_AFTER = 0.03;
    /** A lease is extended by this to learn the server's clock, in milliseconds. */
    private const CLOCK_LEASE = 60_000;
    /** What still runs so many seconds after it was told to stop is given back. */
    private const AFTER_GRACE = 1.0;
    private const LONGEST_TURN = 0.5;
    /** The first jobs are taken when all processes have started, or some after so many seconds. */
    private const STAFFING = 1.0;

    private Processes $processes;
    private readonly Link $pops;
    private readonly Link $control;
    private int $lastNumber = 0;
    /** @var array<int, HeldJob> all whose lease we have, by their number */
    private array $held = [];
    /** @var \SplQueue<HeldJob> taken, and waiting for a process */
    private \SplQueue $waiting;
    /** @var array<string, HeldJob> by key() */
    private array $running = [];
    /** @var array<string, HeldJob> handed out anew while an earlier handler of the same job still runs here */
    private array $blocked = [];
    /** @var array<int, HeldJob> by process */
    private array $jobOf = [];
    /** @var array<int, int> processes without a job */
    private array $idle = [];
    /** @var array<int, int> */
    private array $pids = [];
    /** @var array<int, true> processes that end after their job */
    private array $leaving = [];
    /** @var array<int, float> when to start a process anew */
    private array $startAt = [];
    /** @var array<int|string, resource> what select() reads besides the links */
    private array $streams = [];

    private readonly Reports $reports;
    private float $popAt = 0.0;
    private float $popPause = 0.0;
    private float $extendAt = INF;
    /** The server's clock minus ours, in milliseconds. */
    private ?int $clock = null;
    /** How long handlers take, in seconds: a moving average. */
    private ?float $took = null;

    private float $startedAt = 0.0;
    private bool $isStaffed = false;
    private bool $mustStop = false;
    private ?float $stoppedAt = null;
    private bool $isGraceOver = false;
    private ?float $reportUntil = null;
    private ?DelayqException $failure = null;

    /**
     * @param list<string>              $topics
     * @param int|null                  $leaseMs null: the job's own, or the topic's
     * @param object                    $log     a PSR-3 logger
     * @param \Closure(Channel): never $main    what a process does
     */
    public function __construct(
        private readonly Settings $settings,
        private array $topics,
        private readonly int $concurrency,
        private readonly ?int $leaseMs,
        private readonly float $wait,
        private readonly float $grace,
        private readonly object $log,
        private readonly \Closure $main,
    ) {
        $this->pops = new Link($settings, $wait + $settings->timeout);
        $this->control = new Link($settings, $settings->timeout);
        $this->reports = new Reports($this->control, $log);
        $this->waiting = new \SplQueue();
    }

    public function requestStop(): void
    {
        $this->mustStop = true;
    }

    /** Works until a stop was requested and all is over. @throws DelayqException if the server hands out no jobs */
    public function run(): void
    {
        $this->startedAt = Time::now();
        $this->processes = new Processes($this->concurrency, $this->main);
        $this->streams = array_map(static fn (Channel $channel) => $channel->stream(), $this->processes->channels);
        $this->streams['control'] = $this->processes->control->stream();
        try {
            do {
                $now = Time::now();
                $this->openLinks($now);
                $this->advanceStop($now);
                $this->startProcesses($now);
                $this->extend($now);
                $this->assign();
                foreach ($this->reports->send($now) as [$tag, $reply]) {
                    $this->takeReply($tag, $reply);
                }
                $this->pop($now);
                $this->waitForNews();
            } while (!$this->isOver());
        } finally {
            $this->pops->close();
            $this->control->close();
            $this->processes->end();
        }
        if ($this->failure !== null) {
            throw $this->failure;
        }
    }

    // ---- connections

    private function openLinks(float $now): void
    {
        foreach ([$this->control, $this->pops] as $link) {
            if ($link === $this->pops && $this->mustStop) {
                continue;
            }
            try {
                $link->open($now);
            } catch (DelayqException $problem) {
                $this->meetProblem($problem, 'cannot connect');
            }
        }
    }

    /** Something that goes away by waiting is logged; anything else ends the worker. */
    private function meetProblem(DelayqException $problem, string $what): void
    {
        if ($problem->retryable) {
            $this->log->warning("$what: {$problem->getMessage()}", ['code' => $problem->getCode()]);
        } elseif ($this->failure === null) {
            $this->failure = $problem;
            $this->mustStop = true;
        }
    }

    private function waitForNews(): void
    {
        $now = Time::now();
        $read = $this->streams;
        $write = [];
        foreach (['pops' => $this->pops, 'commands' => $this->control] as $name => $link) {
            if ($link->isUp()) {
                $read[$name] = $link->stream();
                if ($link->hasUnsent()) {
                    $write[$name] = $link->stream();
                }
            }
        }
        foreach ($this->jobOf as $number => $job) {
            if ($this->processes->channels[$number]->hasUnsent()) {
                $write[$number] = $this->streams[$number];
            }
        }
        $until = min($now + self::LONGEST_TURN, $this->extendAt, $this->control->nextAt(), $this->mustStop ? INF : $this->pops->nextAt(), $this->nextTimer($now));
        $left = $this->mustStop && $this->stoppedAt === null ? 0.0 : max(0.0, $until - $now);
        $except = null;
        if (@stream_select($read, $write, $except, (int) $left, (int) (($left - (int) $left) * 1e6)) === false) {
            return;  // a signal
        }
        foreach ($write as $number => $stream) {
            if (is_int($number)) {
                $this->processes->channels[$number]->write();
            }
        }
        foreach ($read as $number => $stream) {
            if (is_int($number)) {
                $this->hear($number);
            }
        }
        if (isset($read['control'])) {
            $this->hearOfProcesses();
        }
        foreach (['commands' => $this->control, 'pops' => $this->pops] as $name => $link) {
            if ($link->isUp()) {
                $replies = $link->collect(isset($read[$name]));
                foreach ($replies as [$tag, $reply]) {
                    $this->takeReply($tag, $reply);
                }
                if (!$link->isUp() && $link === $this->control) {
                    $this->clock = null;  // the next server may have another one
                }
                if (!$link->isUp() && !($link === $this->pops && $this->mustStop)) {
                    $this->log->warning("the connection to {$this->settings->address()} was lost");
                }
            }
        }
    }

    private function nextTimer(float $now): float
    {
        $next = min([INF, ...$this->startAt]);
        $next = min($next, $this->reports->nextAt($now));
        if ($this->popAt > $now) {
            $next = min($next, $this->popAt);
        }
        if ($this->stoppedAt !== null && $this->running !== []) {
            $next = min($next, $this->stoppedAt + $this->grace + ($this->isGraceOver ? self::AFTER_GRACE : 0.0));
        }
        return $next;
    }

    private function takeReply(mixed $tag, mixed $reply): void
    {
        $now = Time::now();
        match ($tag[0] ?? '') {
            'pop' => $this->takePopped($reply, $now),
            'ack', 'nack', 'release' => $this->reports->takeReply($tag, $reply, $now),
            'learn', 'clock', 'extend' => $this->takeExtended($tag[0], $tag[1], $reply, $now),
            'get' => $this->takeLooked($tag[1], $reply),
            default => null,
        };
    }

    // ---- taking jobs

    private function pop(float $now): void
    {
        if ($this->mustStop || $now < $this->popAt || !$this->pops->isUp() || !$this->pops->isIdle() || !$this->control->isUp()) {
            return;
        }
        if (!$this->isStaffed) {
            $this->isStaffed = count($this->pids) === $this->concurrency || ($this->pids !== [] && $now > $this->startedAt + self::STAFFING);
            if (!$this->isStaffed) {
                return;
            }
        }
        $ahead = $this->took === null ? 0 : (int) min(self::MOST_AHEAD, $this->concurrency * self::AHEAD / max($this->took, 1e-4));
        $count = count($this->idle) + $ahead - count($this->waiting);
        if ($count <= 0) {
            return;
        }
        $words = ['POP', ...self::inOrder($this->topics), 'COUNT', (string) $count, 'WAIT', Time::duration($this->wait, 'wait'), 'HEADERS'];
        if ($this->leaseMs !== null) {
            array_push($words, 'LEASE', "{$this->leaseMs}ms");
        }
        $this->topics[] = array_shift($this->topics);  // so that a topic that is never empty does not keep the others waiting
        $this->pops->send(Connection::encode($words), ['pop']);
        $this->pops->collect(false);
    }

    /**
     * Only the first word of a POP is always a topic: one with the name of an option goes there.
     *
     * @param list<string> $topics
     * @return list<string>
     */
    public static function inOrder(array $topics): array
    {
        $odd = array_filter($topics, static fn (string $topic): bool => in_array(strtoupper($topic), ['COUNT', 'WAIT', 'LEASE', 'AUTOACK', 'HEADERS'], true));
        if (count($odd) > 1) {
            throw new DelayqException('invalid', 'topic: at most one topic of a worker may have the name of an option of POP');
        }
        return [...$odd, ...array_diff($topics, $odd)];
    }

    private function takePopped(mixed $reply, float $now): void
    {
        if ($reply instanceof DelayqException) {
            if ($this->pops->isUp()) {
                $this->popPause = min(5.0, max(0.1, $this->popPause * 2));
                $this->popAt = $now + max($this->popPause, $reply->retryAfter ?? 0.0);
                $this->meetProblem($reply, 'cannot take jobs');
            }
            return;
        }
        if (!self::isListOfJobs($reply)) {
            $problem = new DelayqException('unavailable', 'the answer to POP makes no sense');
            $this->popPause = min(5.0, max(0.1, $this->popPause * 2));
            $this->popAt = $now + $this->popPause;
            $this->meetProblem($problem, 'cannot take jobs');
            return;
        }
        $this->popPause = 0.0;
        foreach ($reply ?? [] as [$lease, $topic, $id, $payload, $attempt, $due, $headers]) {
            if ($this->mustStop) {
                $this->reports->release($lease);
                continue;
            }
            $job = new HeldJob(++$this->lastNumber, $lease, $topic, $id, $payload, $attempt, $due, $headers);
            $job->length = $this->leaseMs;
            $job->extendAt = $now + ($this->leaseMs === null ? self::LEARN_AFTER : $this->leaseMs / 3000);
            $this->extendAt = min($this->extendAt, $job->extendAt);
            $this->held[$job->number] = $job;
            $this->waiting->enqueue($job);
        }
    }

    private static function isListOfJobs(mixed $reply): bool
    {
        $isJob = static fn (mixed $job): bool => is_array($job) && count($job) >= 7 && is_string($job[0]) && is_string($job[1]) && is_string($job[2])
            && is_string($job[3]) && is_int($job[4]) && is_int($job[5]) && is_array($job[6]);
        return $reply === null || (is_array($reply) && array_is_list($reply) && array_filter($reply, $isJob) === $reply);
    }

    private function assign(): void
    {
        while ($this->idle !== [] && !$this->waiting->isEmpty() && !$this->mustStop) {
            $job = $this->waiting->dequeue();
            if ($job->isLost) {
                unset($this->held[$job->number]);
                continue;
            }
            $key = $job->key();
            if (isset($this->running[$key])) {
                // The server has given it out again, so the earlier lease is void. Its handler ends first.
                $this->lose($this->running[$key]);
                unset($this->held[($this->blocked[$key] ?? null)?->number]);
                $this->blocked[$key] = $job;
                continue;
            }
            $job->process = array_pop($this->idle);
            $job->startedAt = Time::now();
            $this->running[$key] = $this->jobOf[$job->process] = $job;
            $values = serialize([$job->topic, $job->id, $job->payload, $job->attempt, $job->dueMs, array_map('strval', $job->headers)]);
            $channel = $this->processes->channels[$job->process];
            $channel->send(Channel::JOB, $job->number, $values);
            if ($job->reason !== null) {
                $channel->send(Channel::REASON, $job->number, $job->reason);
            }
        }
    }

    // ---- processes

    private function hear(int $number): void
    {
        $frames = $this->processes->channels[$number]->receive();
        if ($frames === null) {
            unset($this->streams[$number]);
            return;
        }
        foreach ($frames as [$kind, $about, $body]) {
            $job = $this->jobOf[$number] ?? null;
            if ($kind === Channel::READY) {
                $this->pids[$number] = $about;
                $this->idle[] = $number;
            } elseif ($kind === Channel::STOP) {
                $this->mustStop = true;
            } elseif ($job === null || $job->number !== $about) {
                continue;  // about a job that was given back
            } elseif ($kind === Channel::DONE || $kind === Channel::FAILED) {
                $this->finish($job, $kind === Channel::DONE ? null : unserialize($body, ['allowed_classes' => false]));
                if (!isset($this->leaving[$number])) {
                    $this->idle[] = $number;
                    $this->assign();  // before the others are heard: what waits longest is this process
                }
            } elseif ($kind === Channel::LEAVING) {
                $this->leaving[$number] = true;
            } elseif ($kind === Channel::WANT_SIGNAL) {
                $job->wantsSignal = true;
                if ($job->reason !== null) {
                    posix_kill($this->pids[$number], SIGUSR1);
                }
            } elseif ($kind === Channel::ASK_LEASE) {
                $job->asksLease = true;
                if (!$this->answerLease($job) && !$job->isExtending) {
                    $this->extendAt = $job->extendAt = 0.0;
                }
            }
        }
    }

    private function hearOfProcesses(): void
    {
        $frames = $this->processes->control->receive();
        if ($frames === null) {
            unset($this->streams['control']);
            $this->meetProblem(new DelayqException('internal', 'the process that starts the others has ended'), '');
            return;
        }
        foreach ($frames as [, $number, $how]) {
            $this->hear($number);  // what it said before it ended
            $this->processes->channels[$number]->clear();
            $isExpected = isset($this->leaving[$number]);
            $wasReady = isset($this->pids[$number]);
            unset($this->pids[$number], $this->leaving[$number]);
            $this->idle = array_values(array_diff($this->idle, [$number]));
            $job = $this->jobOf[$number] ?? null;
            if ($job !== null) {
                $this->finish($job, ["the process of the handler has ended: $how", null, false]);
            } elseif (!$isExpected && !$this->mustStop) {
                $this->log->warning("a process has ended: $how");
            }
            $this->startAt[$number] = Time::now() + ($wasReady ? 0.0 : 1.0);
        }
    }

    private function startProcesses(float $now): void
    {
        foreach ($this->startAt as $number => $at) {
            if ($this->mustStop || $at <= $now) {
                unset($this->startAt[$number]);
                if (!$this->mustStop) {
                    $this->processes->start($number);
                }
            }
        }
    }

    // ---- results

    /** @param array{string, string|null, bool}|null $failure reason, delay, dead; null: it has returned */
    private function finish(HeldJob $job, ?array $failure): void
    {
        $key = $job->key();
        unset($this->held[$job->number], $this->running[$key], $this->jobOf[$job->process]);
        if (isset($this->blocked[$key])) {
            $this->waiting->unshift($this->blocked[$key]);
            unset($this->blocked[$key]);
        }
        $took = Time::now() - $job->startedAt;
        $this->took = $this->took === null ? $took : 0.9 * $this->took + 0.1 * $took;
        if ($job->isLost) {
            $this->log->warning('the lease was lost while the handler ran; its result is dropped', $job->context());
        } elseif ($failure === null) {
            $this->reports->ack($job->lease);
            $this->log->info('done', $job->context() + ['ms' => (int) round($took * 1000)]);
        } elseif ($job->reason === 'stopping') {
            $this->reports->release($job->lease);
            $this->log->info('given back, since the worker stops', $job->context());
        } else {
            [$reason, $delay, $isDead] = $failure;
            $this->reports->nack($job->lease, $reason, $delay, $isDead);
            $this->log->log($isDead ? 'error' : 'warning', $isDead ? 'failed for good' : 'failed', $job->context() + ['reason' => $reason]);
        }
    }

    // ---- leases

    private function extend(float $now): void
    {
        if ($now < $this->extendAt || !$this->control->isUp()) {
            return;
        }
        $this->extendAt = INF;
        foreach ($this->held as $job) {
            if ($job->isLost || $job->isExtending) {
                continue;
            }
            if ($job->extendAt > $now) {
                $this->extendAt = min($this->extendAt, $job->extendAt);
                continue;
            }
            $job->isExtending = true;
            if ($job->length === null) {
                $this->control->send(Connection::encode(['EXTEND', $job->lease]), ['learn', $job]);
                if ($this->clock === null) {
                    $this->control->send(Connection::encode(['EXTEND', $job->lease, self::CLOCK_LEASE . 'ms']), ['clock', $job]);
                }
            } else {
                $this->control->send(Connection::encode(['EXTEND', $job->lease, "{$job->length}ms"]), ['extend', $job]);
                $this->control->send(Connection::encode(['GET', $job->topic, $job->id]), ['get', $job]);
            }
        }
    }

    private function takeExtended(string $kind, HeldJob $job, mixed $reply, float $now): void
    {
        if (!is_int($reply) && !$reply instanceof DelayqException) {
            $reply = new DelayqException('unavailable', 'the answer to EXTEND makes no sense');
        }
        $isPartOfTwo = $kind === 'learn' && $this->clock === null;
        if ($reply instanceof DelayqException) {
            if (!$reply->retryable) {
                $this->lose($job);
            }
            $job->extendAt = $now + ($this->control->isUp() ? 0.2 : 0.0);
        } elseif ($kind === 'clock') {
            $this->clock ??= $reply - self::CLOCK_LEASE - (int) ($now * 1000);
            if ($job->until !== null) {
                $job->length = $this->lengthUntil($job->until, $now);
            }
            $job->extendAt = $now;  // back to its own length
        } else {
            $job->until = $reply;
            if (!$isPartOfTwo) {
                $job->length ??= $this->lengthUntil($reply, $now);
                $job->extendAt = $now + $job->length / 3000;
                $this->answerLease($job);
            }
        }
        if (!$isPartOfTwo) {
            $job->isExtending = false;
            $this->extendAt = min($this->extendAt, $job->extendAt);
        }
    }

    private function lengthUntil(int $until, float $now): int
    {
        return max(100, $until - $this->clock - (int) ($now * 1000));
    }

    private function takeLooked(HeldJob $job, mixed $reply): void
    {
        if (is_array($reply) && ($reply['cancel_requested'] ?? 0) && !$job->isLost) {
            $this->tell($job, 'cancelled');
        }
    }

    private function lose(HeldJob $job): void
    {
        if (!$job->isLost) {
            $job->isLost = true;
            $this->tell($job, 'lease_lost');
            $this->answerLease($job);
        }
    }

    private function tell(HeldJob $job, string $reason): void
    {
        if ($job->reason !== null) {
            return;
        }
        $job->reason = $reason;
        if ($job->process !== null && ($this->jobOf[$job->process] ?? null) === $job) {
            $this->processes->channels[$job->process]->send(Channel::REASON, $job->number, $reason);
            if ($job->wantsSignal) {
                posix_kill($this->pids[$job->process], SIGUSR1);
            }
        }
    }

    /** Returns whether the handler has its answer. */
    private function answerLease(HeldJob $job): bool
    {
        if ($job->asksLease && ($job->isLost || ($job->until !== null && $job->length !== null))) {
            $job->asksLease = false;
            $this->processes->channels[$job->process]->send(Channel::LEASE, $job->number, $job->isLost ? '0' : (string) $job->until);
        }
        return !$job->asksLease;
    }

    // ---- the end

    private function advanceStop(float $now): void
    {
        if (!$this->mustStop) {
            return;
        }
        if ($this->stoppedAt === null) {
            $this->stoppedAt = $now;
            $this->pops->isIdle() ? $this->pops->close() : $this->pops->finish();
            foreach ([...$this->waiting, ...array_values($this->blocked)] as $job) {
                unset($this->held[$job->number]);
                if (!$job->isLost) {
                    $this->reports->release($job->lease);
                }
            }
            $this->waiting = new \SplQueue();
            $this->blocked = [];
        }
        if ($this->pops->isUp() && ($this->pops->isIdle() || $now > $this->stoppedAt + self::AFTER_GRACE)) {
            $this->pops->close();
        }
        if (!$this->isGraceOver && $now >= $this->stoppedAt + $this->grace) {
            $this->isGraceOver = true;
            foreach ($this->running as $job) {
                $this->tell($job, 'stopping');
            }
        }
        if ($now >= $this->stoppedAt + $this->grace + self::AFTER_GRACE) {
            foreach ($this->running as $job) {
                $this->giveBack($job);
            }
        }
    }

    /** The handler takes too long: its process is ended, since somebody else will have the job. */
    private function giveBack(HeldJob $job): void
    {
        unset($this->held[$job->number], $this->running[$job->key()], $this->jobOf[$job->process]);
        $this->processes->kill($job->process);
        if (!$job->isLost) {
            $this->reports->release($job->lease);
        }
        $this->log->warning('the handler did not end when the worker stopped: its process is ended, and the job is given back', $job->context());
    }

    private function isOver(): bool
    {
        if ($this->stoppedAt === null || $this->running !== [] || $this->pops->isUp()) {
            return false;
        }
        $left = $this->reports->count();
        if ($left === 0 && $this->control->isIdle()) {
            return true;
        }
        $this->reportUntil ??= Time::now() + max(1.0, $this->settings->retryFor);
        if (Time::now() < $this->reportUntil) {
            return false;
        }
        $this->log->error('the server was away when the worker stopped: results are lost, and their jobs are handed out again', ['results' => $left]);
        return true;
    }
}
