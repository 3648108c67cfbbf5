<?php

declare(strict_types=1);

namespace Delayq;

use Delayq\Internal\Time;

/**
 * A job as it is stored now: what Client::get() returns.
 */
final class StoredJob
{
    /** @param array<string, string> $headers */
    public function __construct(
        public readonly string $topic,
        public readonly string $id,
        /** `delayed`, `ready`, `reserved`, `done` or `dead` */
        public readonly string $state,
        public readonly string $payload,
        public readonly \DateTimeImmutable $dueAt,
        public readonly \DateTimeImmutable $pushedAt,
        public readonly int $attempts,
        public readonly int $priority,
        public readonly ?string $group,
        /** The end of the lease, or of the time for which a done or dead job is kept. */
        public readonly ?\DateTimeImmutable $until,
        public readonly ?string $callback,
        /** The last error. */
        public readonly ?string $outcome,
        public readonly bool $cancelRequested,
        public readonly array $headers,
    ) {
    }

    /** @internal */
    public static function fromReply(array $reply): self
    {
        return new self(
            $reply['topic'],
            $reply['id'],
            $reply['state'],
            $reply['body'],
            Time::fromMillis($reply['due_ms']),
            Time::fromMillis($reply['pushed_ms']),
            $reply['attempts'],
            $reply['priority'],
            $reply['group'] ?? null,
            Time::fromMillis($reply['until_ms'] ?? null),
            $reply['callback'] ?? null,
            $reply['outcome'] ?? null,
            (bool) ($reply['cancel_requested'] ?? false),
            array_map('strval', $reply['headers'] ?? []),
        );
    }
}
