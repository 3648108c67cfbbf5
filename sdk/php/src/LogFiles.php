<?php

declare(strict_types=1);

namespace Delayq;

/**
 * Log files of a consumer as DelayQ's consumer has them: `logs/TOPIC_access.log` for what was done, and
 * `logs/TOPIC_error.log` for what failed. What concerns no topic is in `consumer_access.log` and
 * `consumer_error.log`.
 *
 * It is a PSR-3 logger: the topic is `topic` in the context. Each line is appended in one write, so several
 * processes can share the files, and a file that was moved away is made anew.
 */
final class LogFiles implements Log
{
    use Internal\Levels;

    /**
     * @param string $directory is made if it is not there
     * @param bool   $daily     a file for each day: `TOPIC_access-2026-11-19.log`
     */
    public function __construct(private readonly string $directory = 'logs', private readonly bool $daily = false)
    {
        if (!is_dir($directory) && !@mkdir($directory, 0o777, true) && !is_dir($directory)) {
            throw new DelayqException('invalid', "directory: cannot make \"$directory\"");
        }
    }

    public function log($level, $message, array $context = []): void
    {
        $topic = (string) ($context['topic'] ?? 'consumer');
        // A topic may have any characters; "/" and a dot at the start would be another directory or a hidden file.
        $name = strtr(ltrim($topic, '.') === '' ? 'consumer' : $topic, ['/' => '_', "\0" => '_']);
        $name = preg_replace('/^\./', '_', $name);
        $kind = self::isProblem((string) $level) ? 'error' : 'access';
        $day = $this->daily ? (new \DateTimeImmutable())->format('-Y-m-d') : '';
        $file = "$this->directory/{$name}_$kind$day.log";
        if (@file_put_contents($file, self::line((string) $level, $message, $context), FILE_APPEND) === false) {
            error_log("delayq: cannot write $file");
        }
    }
}
