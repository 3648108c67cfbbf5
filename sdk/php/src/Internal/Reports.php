<?php

declare(strict_types=1);

namespace Delayq\Internal;

use Delayq\DelayqException;

/**
 * What became of jobs, until the server knows it: acks and releases go in batches. A lease can end only once, so a
 * report whose answer was lost is sent again.
 *
 * @internal
 */
final class Reports
{
    private const BATCH = 1_000;
    private const PAUSE = 0.1;

    /** @var list<string> leases */
    private array $acks = [];
    /** @var list<string> commands */
    private array $nacks = [];
    /** @var list<string> leases */
    private array $releases = [];
    private bool $knowsRelease = true;
    private float $sendAt = 0.0;

    public function __construct(private readonly Link $link, private readonly object $log)
    {
    }

    public function ack(string $lease): void
    {
        $this->acks[] = $lease;
    }

    public function nack(string $lease, string $reason, ?string $delay, bool $isDead): void
    {
        $words = ['NACK', $lease, 'REASON', $reason];
        $words = $delay === null ? $words : [...$words, 'DELAY', $delay];
        $this->nacks[] = Connection::encode($isDead ? [...$words, 'DEAD'] : $words);
    }

    public function release(string $lease): void
    {
        $this->releases[] = $lease;
    }

    /** How many have not been sent. */
    public function count(): int
    {
        return count($this->acks) + count($this->nacks) + count($this->releases);
    }

    /** When send() has something to do that it cannot do now. */
    public function nextAt(float $now): float
    {
        return $this->sendAt > $now && $this->count() > 0 ? $this->sendAt : INF;
    }

    /** @return list<array{mixed, mixed}> tags with replies, as of Link::collect() */
    public function send(float $now): array
    {
        if (!$this->link->isUp() || $now < $this->sendAt || $this->count() === 0) {
            return [];
        }
        foreach (array_chunk($this->acks, self::BATCH) as $leases) {
            $this->link->send(Connection::encode(['ACK', ...$leases]), ['ack', $leases]);
        }
        foreach ($this->nacks as $command) {
            $this->link->send($command, ['nack', $command]);
        }
        foreach (array_chunk($this->releases, $this->knowsRelease ? self::BATCH : 1) as $leases) {
            $words = $this->knowsRelease ? ['RELEASE', ...$leases] : ['NACK', $leases[0], 'DELAY', '0', 'REASON', 'worker stopped'];
            $this->link->send(Connection::encode($words), ['release', $leases]);
        }
        $this->acks = $this->nacks = $this->releases = [];
        return $this->link->collect(false);
    }

    /** @param array{string, list<string>|string} $tag */
    public function takeReply(array $tag, mixed $reply, float $now): void
    {
        [$kind, $what] = $tag;
        if ($kind === 'ack' && is_int($reply) && $reply < count($what)) {
            $this->log->notice(sprintf('%d of %d acks were for leases that are not current any more', count($what) - $reply, count($what)));
        }
        if (!$reply instanceof DelayqException) {
            return;
        }
        $isUnknown = $kind === 'release' && $reply->getCode() === 'invalid' && str_contains($reply->getMessage(), 'unknown command');
        if ($isUnknown) {
            $this->knowsRelease = false;
        } elseif (!$reply->retryable) {
            $this->log->warning("a result was refused: {$reply->getMessage()}", ['code' => $reply->getCode()]);
            return;
        } elseif ($this->link->isUp()) {
            $this->sendAt = $now + max(self::PAUSE, $reply->retryAfter ?? 0.0);
        }
        match ($kind) {
            'ack' => array_push($this->acks, ...$what),
            'nack' => $this->nacks[] = $what,
            'release' => array_push($this->releases, ...$what),
        };
    }
}
