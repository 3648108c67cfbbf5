<?php

declare(strict_types=1);

namespace Delayq;

/**
 * The job that Client::runSchedule() has made.
 */
final class ScheduleRun
{
    public function __construct(
        public readonly string $topic,
        public readonly string $id,
        public readonly string $state,
        public readonly \DateTimeImmutable $dueAt,
    ) {
    }
}
