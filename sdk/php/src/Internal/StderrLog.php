<?php

declare(strict_types=1);

namespace Delayq\Internal;

use Delayq\Log;

/**
 * The log of a worker without one: warnings and worse on standard error.
 *
 * @internal
 */
final class StderrLog implements Log
{
    use Levels;

    public function log($level, $message, array $context = []): void
    {
        if (self::isProblem((string) $level)) {
            file_put_contents('php://stderr', 'delayq: ' . self::line((string) $level, $message, $context));
        }
    }
}
