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
    private const AHEAD = 0.02;
    /** What was taken ahead and has not begun after so many seconds is given back. */
    private const LONGEST_HOLD = 0.2;
    /** How many seconds a handler takes, as long as nothing is known. */
    private const USUAL = 1.0;
    /** What still runs so many seconds after it was told to stop is given back. */
    private const AFTER_GRACE = 1.0;
    private const LONGEST_TURN = 0.5;
    /** The first jobs are taken when all processes have started, or some after so many seconds. */
    private const STAFFING = 1.0;

    private Processes $processes;
    private readonly Link $pops;
    private readonly Link $control;
    private int $lastNumber = 0;
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

    private readonly Leases $leases;
    private readonly Reports $reports;
    private float $popAt = 0.0;
    private float $popPause = 0.0;
    /** How long handlers take, in seconds: a moving average. */
    private float $took = self::USUAL;
    /** Whether the server takes jobs back without counting the attempt; null: it was not asked yet. */
    private ?bool $canRelease = null;

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
        $this->leases = new Leases($this->control, $leaseMs, $this->tell(...), $this->answerLease(...));
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
                $this->leases->extend($now);
                $this->assign();
                $this->giveOldBack($now);
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
        $until = min($now + self::LONGEST_TURN, $this->leases->nextAt(), $this->control->nextAt(), $this->mustStop ? INF : $this->pops->nextAt(), $this->nextTimer($now));
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
                if (!$link->isUp() && $link === $this->pops) {
                    $this->canRelease = null;
                }
                if (!$link->isUp() && $link === $this->control) {
                    $this->leases->forgetClock();  // the next server may have another one
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
        if (!$this->waiting->isEmpty()) {
            $next = min($next, $this->waiting->bottom()->takenAt + self::LONGEST_HOLD);
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
            'learn', 'clock', 'extend', 'get' => $this->leases->takeReply($tag[0], $tag[1], $reply, $now),
            'knows' => $this->canRelease = is_array($reply) && isset($reply[0]),
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
        $ahead = $this->canRelease !== true ? 0 : (int) min(2 * $this->concurrency, $this->concurrency * self::AHEAD / max($this->took, 1e-4));
        $count = count($this->idle) + $ahead - count($this->waiting);
        if ($count <= 0) {
            return;
        }
        $words = ['POP', ...self::inOrder($this->topics), 'COUNT', (string) $count, 'WAIT', Time::duration($this->wait, 'wait'), 'HEADERS'];
        if ($this->leaseMs !== null) {
            array_push($words, 'LEASE', "{$this->leaseMs}ms");
        }
        if ($this->canRelease === null) {
            $this->pops->send(Connection::encode(['COMMAND', 'INFO', 'RELEASE']), ['knows']);
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
            $job = new HeldJob(++$this->lastNumber, $lease, $topic, $id, $payload, $attempt, $due, $headers, $now);
            $this->leases->hold($job);
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
                $this->leases->drop($job);
                continue;
            }
            $key = $job->key();
            if (isset($this->running[$key])) {
                // The server has given it out again, so the earlier lease is void. Its handler ends first.
                $this->leases->lose($this->running[$key]);
                if (isset($this->blocked[$key])) {
                    $this->leases->drop($this->blocked[$key]);
                }
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

    /** Handlers have become slow: other workers get what waits for one, and no more is taken ahead for a while. */
    private function giveOldBack(float $now): void
    {
        while (!$this->waiting->isEmpty() && $this->waiting->bottom()->takenAt + self::LONGEST_HOLD <= $now) {
            $this->giveUnbegunBack($this->waiting->dequeue());
            $this->took = self::USUAL;
        }
    }

    private function giveUnbegunBack(HeldJob $job): void
    {
        $this->leases->drop($job);
        if (!$job->isLost) {
            $this->reports->release($job->lease);
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
                if (!$this->answerLease($job)) {
                    $this->leases->lookNow($job);
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
        $this->leases->drop($job);
        unset($this->running[$key], $this->jobOf[$job->process]);
        if (isset($this->blocked[$key])) {
            $this->waiting->unshift($this->blocked[$key]);
            unset($this->blocked[$key]);
        }
        $took = Time::now() - $job->startedAt;
        $this->took = 0.9 * $this->took + 0.1 * $took;
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

    // ---- telling handlers

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
            array_map($this->giveUnbegunBack(...), [...$this->waiting, ...array_values($this->blocked)]);
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
        $this->leases->drop($job);
        unset($this->running[$job->key()], $this->jobOf[$job->process]);
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
