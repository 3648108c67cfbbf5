<?php

declare(strict_types=1);

require __DIR__ . '/../autoload.php';
// Debian's php-psr-log, if it is there: the tests with a PSR-3 logger need it.
@include_once '/usr/share/php/Psr/Log/autoload.php';

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Delayq\\Tests\\')) {
        require __DIR__ . '/' . strtr(substr($class, 13), '\\', '/') . '.php';
    }
});
