<?php

declare(strict_types=1);

namespace Delayq;

/**
 * A handler throws this: the job is dead at once, whatever attempts are left.
 */
class Dead extends \RuntimeException
{
    public function __construct(string $reason)
    {
        parent::__construct($reason);
    }
}
