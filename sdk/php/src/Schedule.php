<?php

declare(strict_types=1);

namespace Delayq;

use Delayq\Internal\Time;

/**
 * A rule that makes a job again and again. Durations are seconds.
 */
final class Schedule
{
    /** @param array<string, string> $headers */
    public function __construct(
        public readonly string $name,
        /** `active`, `paused` or `ended` */
        public readonly string $state,
        public readonly string $topic,
        /** Only Client::getSchedule() fills in the payload and the headers. */
        public readonly ?string $payload,
        public readonly array $headers,
        public readonly ?float $every,
        public readonly ?string $cron,
        public readonly ?string $zone,
        public readonly ?\DateTimeImmutable $start,
        public readonly ?\DateTimeImmutable $end,
        public readonly ?int $runs,
        public readonly float $jitter,
        public readonly string $overlap,
        public readonly string $missed,
        public readonly ?\DateTimeImmutable $nextAt,
        /** The same moment by the clock of the zone. */
        public readonly ?string $nextLocal,
        /** How many jobs it has made, occurrences it has skipped, and missed. */
        public readonly int $made,
        public readonly int $skipped,
        public readonly int $missedCount,
        /** Of Client::every() and cron(): `created`, `updated` or `unchanged`. */
        public readonly ?string $result,
        public readonly ?int $priority,
        public readonly ?int $retry,
        public readonly ?string $backoff,
        public readonly ?float $timeout,
        public readonly ?string $group,
        public readonly ?string $callback,
    ) {
    }

    /** @internal */
    public static function fromReply(array $reply): self
    {
        $seconds = static fn (string $key): ?float => isset($reply[$key]) ? Time::seconds($reply[$key]) : null;
        return new self(
            $reply['name'],
            $reply['state'] ?? 'broken',
            $reply['topic'] ?? '',
            $reply['body'] ?? null,
            array_map('strval', $reply['headers'] ?? []),
            $seconds('every'),
            $reply['cron'] ?? null,
            $reply['zone'] ?? null,
            Time::fromMillis($reply['start_ms'] ?? null),
            Time::fromMillis($reply['end_ms'] ?? null),
            $reply['runs'] ?? null,
            $seconds('jitter') ?? 0.0,
            $reply['overlap'] ?? 'allow',
            $reply['missed'] ?? 'one',
            Time::fromMillis($reply['next_ms'] ?? null),
            $reply['next_local'] ?? null,
            $reply['occurrences_made'] ?? 0,
            $reply['occurrences_skipped'] ?? 0,
            $reply['occurrences_missed'] ?? 0,
            $reply['result'] ?? null,
            $reply['priority'] ?? null,
            $reply['attempts'] ?? null,
            $reply['backoff'] ?? null,
            $seconds('lease'),
            $reply['group'] ?? null,
            $reply['callback'] ?? null,
        );
    }
}
