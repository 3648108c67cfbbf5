<?php

declare(strict_types=1);

namespace Delayq\Internal;

/**
 * Makes UUIDs of version 7.
 *
 * @internal
 */
final class Ids
{
    private const RANDOM_BYTES = 4_096;

    private string $random = '';
    private int $at = 0;
    private int $ms = 0;
    private string $prefix = '';

    public function next(): string
    {
        $ms = (int) (microtime(true) * 1000);
        if ($ms !== $this->ms) {
            $hex = sprintf('%012x', $ms);
            $this->ms = $ms;
            $this->prefix = substr($hex, 0, 8) . '-' . substr($hex, 8) . '-7';
        }
        if ($this->at + 19 > strlen($this->random)) {
            $this->random = bin2hex(random_bytes(self::RANDOM_BYTES));
            $this->at = 0;
        }
        $at = $this->at;
        $this->at = $at + 19;
        $random = $this->random;
        return $this->prefix . substr($random, $at, 3) . '-' . '89ab'[hexdec($random[$at + 3]) & 3]
            . substr($random, $at + 4, 3) . '-' . substr($random, $at + 7, 12);
    }

    /** After a fork: the other process makes ids of the same random bytes. */
    public function forget(): void
    {
        $this->random = '';
    }
}
