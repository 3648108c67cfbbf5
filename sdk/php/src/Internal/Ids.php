<?php

declare(strict_types=1);

namespace Delayq\Internal;

/**
 * Makes UUIDs of version 7. Those of one millisecond have the same random bits and then count, so they are in the
 * order in which they were made.
 *
 * @internal
 */
final class Ids
{
    private int $ms = 0;
    private string $prefix = '';
    private int $count = 0;

    public function next(): string
    {
        $ms = (int) (microtime(true) * 1000);
        if ($ms !== $this->ms) {
            $this->ms = $ms;
            $time = sprintf('%012x', $ms);
            $random = bin2hex(random_bytes(10));
            $this->prefix = substr($time, 0, 8) . '-' . substr($time, 8) . '-7' . substr($random, 0, 3) . '-'
                . '89ab'[hexdec($random[3]) & 3] . substr($random, 4, 3) . '-';
            // 12 digits of which the first is 8 to f, with room to count up.
            $this->count = (1 << 47) | (hexdec(substr($random, 8, 12)) & ((1 << 47) - 1) & ~(1 << 46));
        }
        return $this->prefix . dechex($this->count++);
    }

    /** After a fork: the other process makes ids of the same random bits. */
    public function forget(): void
    {
        $this->ms = 0;
    }
}
