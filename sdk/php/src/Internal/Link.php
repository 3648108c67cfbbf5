<?php

declare(strict_types=1);

namespace Delayq\Internal;

use Delayq\DelayqException;

/**
 * A connection of a worker: it is opened again when it was lost, later each time. Each command has a tag, which
 * comes back with its reply; when the connection is lost, with an `unavailable` error instead.
 *
 * @internal
 */
final class Link
{
    private const FIRST_PAUSE = 0.1;
    private const LONGEST_PAUSE = 5.0;
    /** The worker can do nothing else while it connects. */
    private const CONNECT_TIMEOUT = 2.0;

    private ?Connection $connection = null;
    private float $openAt = 0.0;
    private float $pause = 0.0;
    /** @var list<array{mixed, float}> tags, and when the connection counts as lost */
    private array $waiting = [];
    private int $answered = 0;

    /** @param float $patience how many seconds to wait for a reply */
    public function __construct(private readonly Settings $settings, private readonly float $patience)
    {
    }

    public function isUp(): bool
    {
        return $this->connection !== null;
    }

    public function isIdle(): bool
    {
        return $this->waiting === [];
    }

    /** @return resource|null for stream_select() */
    public function stream()
    {
        return $this->connection?->stream();
    }

    public function hasUnsent(): bool
    {
        return $this->connection?->hasUnsent() ?? false;
    }

    /** When open() or collect() has something to do, even if nothing comes. */
    public function nextAt(): float
    {
        return $this->connection === null ? $this->openAt : ($this->waiting[$this->answered][1] ?? INF);
    }

    /**
     * Opens the connection if it is time to.
     *
     * @throws DelayqException
     */
    public function open(float $now): void
    {
        if ($this->connection !== null || $now < $this->openAt) {
            return;
        }
        try {
            $this->connection = Connection::open($this->settings, min(self::CONNECT_TIMEOUT, $this->settings->connectTimeout));
        } catch (DelayqException $problem) {
            $this->delay($problem->retryAfter ?? 0.0);
            throw $problem;
        }
    }

    private function delay(float $least): void
    {
        $this->pause = min(self::LONGEST_PAUSE, max(self::FIRST_PAUSE, $this->pause * 2));
        $this->openAt = Time::now() + max($least, $this->pause * (0.75 + 0.5 * lcg_value()));
    }

    /** REQUIRES: isUp() */
    public function send(string $command, mixed $tag): void
    {
        $this->connection->queue($command);
        $this->waiting[] = [$tag, Time::now() + $this->patience];
    }

    /** Tells the server that nothing more comes: it answers what it has, and closes. */
    public function finish(): void
    {
        $this->connection?->finish();
    }

    /**
     * Writes and reads what is possible now.
     *
     * @return list<array{mixed, mixed}> tags with their replies
     */
    public function collect(bool $canRead): array
    {
        $done = [];
        try {
            if ($this->connection->hasUnsent()) {
                $this->connection->write();
            }
            if ($canRead) {
                $this->connection->read();
            }
            $this->take($done);
            if (Time::now() > $this->nextAt()) {
                throw new DelayqException('unavailable', "{$this->settings->address()}: no answer in time");
            }
        } catch (DelayqException $problem) {
            return [...$done, ...$this->lose($problem)];
        }
        return $done;
    }

    private function take(array &$done): void
    {
        $nothing = Connection::nothing();
        while (($reply = $this->connection->next()) !== $nothing) {
            $done[] = [$this->waiting[$this->answered][0] ?? null, $reply];
            unset($this->waiting[$this->answered++]);
            $this->pause = 0.0;
        }
        if ($this->waiting === []) {
            $this->waiting = [];  // the next key is 0 again
            $this->answered = 0;
        }
    }

    /** @return list<array{mixed, DelayqException}> */
    public function lose(DelayqException $problem): array
    {
        $this->connection?->close();
        $this->connection = null;
        $this->delay(0.0);
        $tags = array_column($this->waiting, 0);
        $this->waiting = [];
        $this->answered = 0;
        return array_map(static fn (mixed $tag): array => [$tag, $problem], $tags);
    }

    public function close(): void
    {
        $this->connection?->close();
        $this->connection = null;
    }
}
