<?php

declare(strict_types=1);

namespace Delayq;

/**
 * One of the next occurrences of a schedule.
 */
final class Occurrence
{
    public function __construct(
        public readonly \DateTimeImmutable $at,
        /** The same moment by the clock of the zone, with its offset. */
        public readonly string $local,
    ) {
    }
}
