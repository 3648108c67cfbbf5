<?php

declare(strict_types=1);

namespace Delayq;

/**
 * A job that is a class. `$worker->handle('order', CloseOrder::class)` makes an object for each job.
 */
interface Handler
{
    /**
     * Returns: the job is done. Throws: the attempt failed, and the job is retried as its backoff says, after the
     * delay of a RetryIn, or not at all after a Dead.
     */
    public function perform(Job $job): void;
}
