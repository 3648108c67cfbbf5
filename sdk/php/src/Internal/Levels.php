<?php

declare(strict_types=1);

namespace Delayq\Internal;

/**
 * The functions of a PSR-3 logger that only call log(). Their parameters have no types, so that they fit psr/log 1 to 3.
 *
 * @internal
 */
trait Levels
{
    public function emergency($message, array $context = []): void
    {
        $this->log('emergency', $message, $context);
    }

    public function alert($message, array $context = []): void
    {
        $this->log('alert', $message, $context);
    }

    public function critical($message, array $context = []): void
    {
        $this->log('critical', $message, $context);
    }

    public function error($message, array $context = []): void
    {
        $this->log('error', $message, $context);
    }

    public function warning($message, array $context = []): void
    {
        $this->log('warning', $message, $context);
    }

    public function notice($message, array $context = []): void
    {
        $this->log('notice', $message, $context);
    }

    public function info($message, array $context = []): void
    {
        $this->log('info', $message, $context);
    }

    public function debug($message, array $context = []): void
    {
        $this->log('debug', $message, $context);
    }

    private static function isProblem(string $level): bool
    {
        return in_array($level, ['warning', 'error', 'critical', 'alert', 'emergency'], true);
    }

    /** One line: a message with its context. */
    private static function line(string $level, string|\Stringable $message, array $context): string
    {
        $rest = [];
        $text = (string) $message;
        foreach ($context as $name => $value) {
            $value = $value instanceof \Throwable ? $value::class . ': ' . $value->getMessage() : $value;
            $value = is_scalar($value) || $value instanceof \Stringable ? (string) $value : get_debug_type($value);
            if (str_contains($text, '{' . $name . '}')) {
                $text = str_replace('{' . $name . '}', $value, $text);
            } else {
                $rest[] = $name . '=' . (preg_match('/^[^\s"]+$/', $value) === 1 ? $value : json_encode($value, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE));
            }
        }
        $text = preg_replace('/[\x00-\x1f\x7f]+/', ' ', $text);
        return (new \DateTimeImmutable())->format('Y-m-d\TH:i:s.vP') . " $level $text" . ($rest === [] ? '' : ' ' . implode(' ', $rest)) . "\n";
    }
}
