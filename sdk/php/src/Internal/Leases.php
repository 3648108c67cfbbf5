<?php

declare(strict_types=1);

namespace Delayq\Internal;

use Delayq\DelayqException;

/**
 * The leases of the jobs that a worker has: extends each at a third of its length, and looks whether the job was
 * cancelled meanwhile. How long a lease is, the server tells only when it is asked.
 *
 * @internal
 */
final class Leases
{
    /** A lease whose length is not known is looked at after so many seconds: less than a third of the shortest lease. */
    private const LEARN_AFTER = 0.03;
    /** A lease is extended by this to learn the server's clock, in milliseconds. */
    private const CLOCK_LEASE = 60_000;

    /** @var array<int, HeldJob> by their number */
    private array $held = [];
    private float $nextAt = INF;
    /** The server's clock minus ours, in milliseconds. */
    private ?int $clock = null;

    /**
     * @param int|null                                $leaseMs null: the job's own, or the topic's
     * @param \Closure(HeldJob, string): void         $tell    tells a handler why it should stop
     * @param \Closure(HeldJob): bool                 $answer  called when the end of a lease is known, or the lease is lost
     */
    public function __construct(
        private readonly Link $link,
        private readonly ?int $leaseMs,
        private readonly \Closure $tell,
        private readonly \Closure $answer,
    ) {
    }

    public function hold(HeldJob $job): void
    {
        $job->length = $this->leaseMs;
        $job->extendAt = $job->takenAt + ($this->leaseMs === null ? self::LEARN_AFTER : $this->leaseMs / 3000);
        $this->nextAt = min($this->nextAt, $job->extendAt);
        $this->held[$job->number] = $job;
    }

    public function drop(HeldJob $job): void
    {
        unset($this->held[$job->number]);
    }

    public function forgetClock(): void
    {
        $this->clock = null;
    }

    /** When extend() has something to do. */
    public function nextAt(): float
    {
        return $this->nextAt;
    }

    public function lookNow(HeldJob $job): void
    {
        if (!$job->isExtending) {
            $this->nextAt = $job->extendAt = 0.0;
        }
    }

    public function extend(float $now): void
    {
        if ($now < $this->nextAt || !$this->link->isUp()) {
            return;
        }
        $this->nextAt = INF;
        foreach ($this->held as $job) {
            if ($job->isLost || $job->isExtending) {
                continue;
            }
            if ($job->extendAt > $now) {
                $this->nextAt = min($this->nextAt, $job->extendAt);
                continue;
            }
            $job->isExtending = true;
            if ($job->length === null) {
                $this->link->send(Connection::encode(['EXTEND', $job->lease]), ['learn', $job]);
                if ($this->clock === null) {
                    $this->link->send(Connection::encode(['EXTEND', $job->lease, self::CLOCK_LEASE . 'ms']), ['clock', $job]);
                }
            } else {
                $this->link->send(Connection::encode(['EXTEND', $job->lease, "{$job->length}ms"]), ['extend', $job]);
                $this->link->send(Connection::encode(['GET', $job->topic, $job->id]), ['get', $job]);
            }
        }
    }

    /** The reply to what extend() has sent, with its tag. */
    public function takeReply(string $kind, HeldJob $job, mixed $reply, float $now): void
    {
        if ($kind !== 'get') {
            $this->takeExtended($kind, $job, $reply, $now);
        } elseif (is_array($reply) && ($reply['cancel_requested'] ?? 0) && !$job->isLost) {
            ($this->tell)($job, 'cancelled');
        }
    }

    public function lose(HeldJob $job): void
    {
        if (!$job->isLost) {
            $job->isLost = true;
            ($this->tell)($job, 'lease_lost');
            ($this->answer)($job);
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
            $job->extendAt = $now + ($this->link->isUp() ? 0.2 : 0.0);
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
                ($this->answer)($job);
            }
        }
        if (!$isPartOfTwo) {
            $job->isExtending = false;
            $this->nextAt = min($this->nextAt, $job->extendAt);
        }
    }

    private function lengthUntil(int $until, float $now): int
    {
        return max(100, $until - $this->clock - (int) ($now * 1000));
    }
}
