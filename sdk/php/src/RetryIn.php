<?php

declare(strict_types=1);

namespace Delayq;

/**
 * A handler throws this: the attempt failed, and the next one begins after the delay.
 */
class RetryIn extends \RuntimeException
{
    /**
     * @param int|float|string|\DateInterval $delay seconds, or a text such as `"30m"`, or an interval
     */
    public function __construct(public readonly int|float|string|\DateInterval $delay, string $reason = '')
    {
        parent::__construct($reason);
    }
}
