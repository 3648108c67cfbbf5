<?php

declare(strict_types=1);

/**
 * Loads the classes of this library where Composer does not: require this file.
 */
spl_autoload_register(static function (string $class): void {
    if (!str_starts_with($class, 'Delayq\\')) {
        return;
    }
    $file = __DIR__ . '/src/' . strtr(substr($class, 7), '\\', '/') . '.php';
    if (is_file($file)) {
        require $file;
    }
});
