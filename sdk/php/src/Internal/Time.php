<?php

declare(strict_types=1);

namespace Delayq\Internal;

use Delayq\DelayqException;

/**
 * Durations and moments, as callers give them and as the server writes them.
 *
 * @internal
 */
final class Time
{
    private const UNITS = ['ms' => 0.001, 's' => 1, 'm' => 60, 'h' => 3600, 'd' => 86400];

    /** Seconds of a clock that nobody sets: it measures how long something takes, and is no time of day. */
    public static function now(): float
    {
        return hrtime(true) / 1e9;
    }

    /** A duration as the server reads it. A text is passed on as it is. */
    public static function duration(int|float|string|\DateInterval $value, string $field): string
    {
        if (is_string($value)) {
            return $value;
        }
        if ($value instanceof \DateInterval) {
            $from = new \DateTimeImmutable('@0');
            $value = (float) $from->add($value)->format('U.u');
        }
        $ms = round($value * 1000.0);
        if (!is_finite($ms) || abs($ms) > 9e15) {
            throw new DelayqException('invalid', "$field: $value is not a number of seconds");
        }
        return sprintf('%.0fms', $ms);
    }

    /** A moment as the server reads it: Unix seconds with three decimals. */
    public static function moment(int|float|\DateTimeInterface $value, string $field): string
    {
        if ($value instanceof \DateTimeInterface) {
            return sprintf('%.3f', $value->getTimestamp() + (int) $value->format('v') / 1000);
        }
        if (!is_finite((float) $value) || abs($value) > 9e12) {
            throw new DelayqException('invalid', "$field: $value is not a number of Unix seconds");
        }
        return sprintf('%.3f', $value);
    }

    /** The seconds of "1h30m" or "250ms"; null if it is no duration. */
    public static function seconds(string $text): ?float
    {
        if (preg_match('/^(?:\d+(?:\.\d+)?(?:ms|[smhd]))+$/', $text) !== 1) {
            return null;
        }
        preg_match_all('/(\d+(?:\.\d+)?)(ms|[smhd])/', $text, $parts, PREG_SET_ORDER);
        $seconds = 0.0;
        foreach ($parts as [, $number, $unit]) {
            $seconds += $number * self::UNITS[$unit];
        }
        return $seconds;
    }

    /** Unix milliseconds as a moment. */
    public static function fromMillis(?int $ms): ?\DateTimeImmutable
    {
        if ($ms === null) {
            return null;
        }
        $rest = (($ms % 1000) + 1000) % 1000;
        return (new \DateTimeImmutable('@' . intdiv($ms - $rest, 1000)))->modify("+$rest ms");
    }
}
