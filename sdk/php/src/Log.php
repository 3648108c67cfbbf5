<?php

declare(strict_types=1);

namespace Delayq;

if (interface_exists(\Psr\Log\LoggerInterface::class)) {
    /** What the logs of this library are: PSR-3 loggers, if psr/log is installed. */
    interface Log extends \Psr\Log\LoggerInterface
    {
    }
} else {
    /** The same functions where psr/log is not installed. */
    interface Log
    {
        public function log($level, $message, array $context = []);
    }
}
