<?php

declare(strict_types=1);

namespace Delayq;

/**
 * A job in its handler.
 */
final class Job
{
    /** The job whose handler runs in this process now. */
    private static ?self $running = null;

    /**
     * @param array<string, string> $headers
     * @param \Closure(float): ?string $stopReason waits so many seconds for the reason to stop
     * @param \Closure(): ?int         $leaseUntil
     * @param \Closure(\Closure): void $onStop
     * @internal
     */
    public function __construct(
        public readonly string $topic,
        public readonly string $id,
        /** The bytes that were enqueued. */
        public readonly string $payload,
        /** The number of this attempt: 1 for the first. */
        public readonly int $attempt,
        public readonly \DateTimeImmutable $dueAt,
        public readonly array $headers,
        private readonly \Closure $stopReason,
        private readonly \Closure $leaseUntil,
        private readonly \Closure $onStop,
    ) {
    }

    /**
     * The payload, decoded as JSON; objects become arrays.
     *
     * @throws Dead if it is no JSON: another attempt would not help
     */
    public function json(): mixed
    {
        try {
            return json_decode($this->payload, true, 512, JSON_THROW_ON_ERROR);
        } catch (\JsonException $problem) {
            throw new Dead("the payload is not JSON: {$problem->getMessage()}");
        }
    }

    /**
     * Why the handler should end early, or null: go on. A handler that takes long should look now and then.
     *
     * - `cancelled`: the job was cancelled. What the handler finishes is done; a failure is not retried.
     * - `lease_lost`: somebody else may have the job now; what the handler returns changes nothing.
     * - `stopping`: the worker stops, and its grace is over. A failure gives the job back, uncounted. The process
     *   is ended one second later.
     *
     * @param float $wait how many seconds to wait for a reason: `stopReason(5)` is a sleep that ends early
     */
    public function stopReason(float $wait = 0.0): ?string
    {
        return ($this->stopReason)($wait);
    }

    /**
     * Calls `$callback` with the reason as soon as there is one, in the middle of what the handler does (after a
     * signal, SIGUSR1). If it throws, the handler is left by that exception.
     *
     * @param callable(string): void $callback
     */
    public function onStop(callable $callback): void
    {
        ($this->onStop)($callback(...));
    }

    /** The end of the lease as of now, by the server's clock. The worker extends it while the handler runs. */
    public function leaseUntil(): \DateTimeImmutable
    {
        $until = ($this->leaseUntil)() ?? throw new DelayqException('stale_lease', 'the lease is lost');
        return Internal\Time::fromMillis($until);
    }

    /** The job whose handler runs in this process now, for example for a log. */
    public static function running(): ?self
    {
        return self::$running;
    }

    /** @internal */
    public static function setRunning(?self $job): void
    {
        self::$running = $job;
    }
}
