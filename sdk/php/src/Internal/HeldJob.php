<?php

declare(strict_types=1);

namespace Delayq\Internal;

/**
 * A job whose lease a worker has. Times are those of Time::now().
 *
 * @internal
 */
final class HeldJob
{
    /** The process that runs it; null: it waits for one. */
    public ?int $process = null;
    public float $startedAt = 0.0;
    /** The end of the lease in Unix milliseconds of the server; null: not known yet. */
    public ?int $until = null;
    /** The length of the lease in milliseconds; null: not known yet. */
    public ?int $length = null;
    /** When the lease is to be extended. */
    public float $extendAt = 0.0;
    public bool $isExtending = false;
    public bool $isLost = false;
    /** Why the handler was told to stop. */
    public ?string $reason = null;
    public bool $wantsSignal = false;
    public bool $asksLease = false;

    /** @param array<string, string> $headers */
    public function __construct(
        public readonly int $number,
        public readonly string $lease,
        public readonly string $topic,
        public readonly string $id,
        public readonly string $payload,
        public readonly int $attempt,
        public readonly int $dueMs,
        public readonly array $headers,
        public readonly float $takenAt,
    ) {
    }

    public function key(): string
    {
        return "$this->topic\0$this->id";
    }

    /** @return array<string, mixed> for a log */
    public function context(): array
    {
        return ['topic' => $this->topic, 'id' => $this->id, 'attempt' => $this->attempt];
    }
}
