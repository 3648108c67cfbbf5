<?php

declare(strict_types=1);

namespace Delayq\Internal;

use Delayq\DelayqException;

/**
 * The options of jobs and schedules as words of a command.
 *
 * @internal
 */
final class Words
{
    private const JOB_OPTIONS = 'processIn, processAt, group, priority, retry, backoff, timeout, headers, callback, onConflict, unique';

    /**
     * PUSH as it is on the wire. This is the one command of which a program sends very many, so it is put
     * together without a list of words.
     *
     * @param array<string, mixed> $options those of Client::enqueue(); null is the same as absent, and `topic`, `id` and
     *                                      `payload` are passed over
     */
    public static function push(string $topic, string $id, string $payload, array $options): string
    {
        $delay = '0';
        $words = 7;
        $conflict = "$7\r\nREPLACE\r\n";
        $tail = '';
        foreach ($options as $name => $value) {
            if ($value === null) {
                continue;
            }
            switch ($name) {
                case 'topic':
                case 'id':
                case 'payload':
                    break;
                case 'processIn':
                    $delay = is_int($value) && $value < 9_000_000_000_000 ? $value . '000ms' : Time::duration($value, 'processIn');
                    if (isset($options['processAt'])) {
                        throw new DelayqException('invalid', 'processIn and processAt: give one of them');
                    }
                    break;
                case 'processAt':
                    $tail .= self::option('AT', Time::moment($value, 'processAt'));
                    $words += 2;
                    break;
                case 'onConflict':
                    $conflict = match ($value) {
                        'replace' => $conflict,
                        'keep' => "$4\r\nKEEP\r\n",
                        'reject' => '',
                        default => throw new DelayqException('invalid', 'onConflict: ' . self::text($value, 'onConflict') . ' is none of replace, keep, reject'),
                    };
                    $words -= $conflict === '' ? 1 : 0;
                    break;
                case 'unique':
                    $tail .= $value ? "$6\r\nUNIQUE\r\n" : '';
                    $words += $value ? 1 : 0;
                    break;
                default:
                    foreach (self::job([$name => $value]) as $word) {
                        $tail .= '$' . strlen($word) . "\r\n$word\r\n";
                        ++$words;
                    }
            }
        }
        return "*$words\r\n$4\r\nPUSH\r\n$" . strlen($topic) . "\r\n$topic\r\n$" . strlen($delay) . "\r\n$delay\r\n$"
            . strlen($payload) . "\r\n$payload\r\n$2\r\nID\r\n$" . strlen($id) . "\r\n$id\r\n$conflict$tail";
    }

    private static function option(string $name, string $value): string
    {
        return '$' . strlen($name) . "\r\n$name\r\n$" . strlen($value) . "\r\n$value\r\n";
    }

    /**
     * The options that jobs and schedules have in common.
     *
     * @param array<string, mixed> $options
     * @return list<string>
     */
    public static function job(array $options): array
    {
        $words = [];
        foreach ($options as $name => $value) {
            if ($value === null) {
                continue;
            }
            switch ($name) {
                case 'group':
                    array_push($words, 'GROUP', self::text($value, 'group'));
                    break;
                case 'priority':
                    array_push($words, 'PRI', self::text($value, 'priority'));
                    break;
                case 'retry':
                    array_push($words, 'ATTEMPTS', self::text($value, 'retry'));
                    break;
                case 'backoff':
                    $steps = is_string($value) ? [$value] : (is_array($value) ? $value : [$value]);
                    array_push($words, 'BACKOFF', implode(',', array_map(static fn ($step) => Time::duration($step, 'backoff'), $steps)));
                    break;
                case 'timeout':
                    array_push($words, 'LEASE', Time::duration($value, 'timeout'));
                    break;
                case 'callback':
                    array_push($words, 'CALLBACK', self::text($value, 'callback'));
                    break;
                case 'headers':
                    foreach ($value as $header => $text) {
                        array_push($words, 'HEADER', (string) $header, self::text($text, "headers.$header"));
                    }
                    break;
                default:
                    throw new DelayqException('invalid', "$name: there is no such option; there are: " . self::JOB_OPTIONS);
            }
        }
        return $words;
    }

    /**
     * The options that only schedules have.
     *
     * @param array<string, mixed> $options
     * @return list<string>
     */
    public static function schedule(array $options): array
    {
        $words = [];
        foreach ($options as $name => $value) {
            if ($value !== null) {
                array_push($words, strtoupper($name), match ($name) {
                    'start', 'end', 'from' => Time::moment($value, $name),
                    'jitter', 'every' => Time::duration($value, $name),
                    default => self::text($value, $name),
                });
            }
        }
        return $words;
    }

    private static function text(mixed $value, string $field): string
    {
        if (!is_scalar($value) && !$value instanceof \Stringable) {
            throw new DelayqException('invalid', "$field: expected a text, not " . get_debug_type($value));
        }
        return (string) $value;
    }

    /** A payload as bytes: a string is itself, everything else becomes JSON. */
    public static function payload(mixed $payload): string
    {
        if (is_string($payload)) {
            return $payload;
        }
        try {
            return json_encode($payload, JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_PRESERVE_ZERO_FRACTION);
        } catch (\JsonException $problem) {
            throw new DelayqException('invalid', "payload: {$problem->getMessage()}", null, $problem);
        }
    }
}
