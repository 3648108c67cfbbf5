<?php

declare(strict_types=1);

namespace Delayq\Internal;

use Delayq\DelayqException;

/**
 * One connection to a server, in RESP3. The socket never blocks: pipeline() waits for its replies, and a loop of
 * its own calls write(), read() and next().
 *
 * After a DelayqException of any function but next() the connection is of no use any more.
 *
 * @internal
 */
final class Connection
{
    /** Commands are written in portions of this size while replies come in. */
    private const PORTION = 262_144;
    /** So many bytes of commands may be without a reply. */
    private const UNANSWERED = 4_194_304;
    /** A reply that is larger is not one of delayq's: a body has at most 64 MiB, and a pop of several jobs ends at 8 MiB. */
    private const LONGEST = 268_435_456;
    private const LONGEST_LINE = 65_536;
    private const MOST_ITEMS = 2_000_000;
    private const DEEPEST = 8;

    private static ?\stdClass $nothing = null;

    /** @var resource|null */
    private $stream;
    private string $out = '';
    private string $in = '';
    private int $at = 0;
    /** Bytes that `in` must have before the next reply can be complete. */
    private int $needed = 0;
    /** @var list<array{string, int, list<mixed>}> aggregates that are not complete: kind, missing, items */
    private array $open = [];
    private int $errors = 0;
    /** Of the reply that is being read: announced items, and bytes that are not in `in` any more. */
    private int $items = 0;
    private int $bytes = 0;

    /** @param resource $stream */
    private function __construct($stream, private readonly Settings $settings, private readonly int $pid)
    {
        $this->stream = $stream;
        stream_set_blocking($stream, false);
        stream_set_read_buffer($stream, 0);
        stream_set_write_buffer($stream, 0);
        stream_set_chunk_size($stream, self::PORTION);
    }

    /** Connects and introduces itself. */
    public static function open(Settings $settings, ?float $timeout = null): self
    {
        $timeout ??= $settings->connectTimeout;
        $deadline = Time::now() + $timeout;
        $context = stream_context_create([
            'socket' => ['tcp_nodelay' => true],
            'ssl' => ($settings->tls ?? []) + ['peer_name' => $settings->host],
        ]);
        $stream = self::quietly(
            static fn () => stream_socket_client("tcp://{$settings->address()}", $number, $text, $timeout, STREAM_CLIENT_CONNECT, $context),
            "cannot connect to {$settings->address()}",
        );
        if ($settings->tls !== null) {
            stream_set_timeout($stream, max(1, (int) ceil($timeout)));
            self::quietly(
                static fn () => stream_socket_enable_crypto($stream, true, STREAM_CRYPTO_METHOD_TLS_CLIENT),
                "no TLS connection to {$settings->address()}",
            );
        }
        $connection = new self($stream, $settings, getmypid());
        $words = ['HELLO', '3'];
        if ($settings->token !== null) {
            array_push($words, 'AUTH', $settings->tokenName ?? 'default', $settings->token);
        }
        $hello = $connection->pipeline([self::encode($words)], max(0.1, $deadline - Time::now()))[0];
        if ($hello instanceof DelayqException) {
            throw $hello;
        }
        return $connection;
    }

    /** Runs a function of PHP's that warns and returns false when it fails. */
    private static function quietly(\Closure $function, string $what): mixed
    {
        $problem = '';
        set_error_handler(static function (int $level, string $message) use (&$problem): bool {
            $problem .= ($problem === '' ? '' : '; ') . preg_replace('/^\w+\(\): /', '', $message);
            return true;
        });
        try {
            $result = $function();
        } finally {
            restore_error_handler();
        }
        if ($result === false || $result === 0) {
            throw new DelayqException('unavailable', $problem === '' ? $what : "$what: $problem");
        }
        return $result;
    }

    /** A command as it is on the wire. @param list<string> $words */
    public static function encode(array $words): string
    {
        $bytes = '*' . count($words) . "\r\n";
        foreach ($words as $word) {
            $bytes .= '$' . strlen($word) . "\r\n" . $word . "\r\n";
        }
        return $bytes;
    }

    /** What next() returns when the next reply has not come whole. */
    public static function nothing(): \stdClass
    {
        return self::$nothing ??= new \stdClass();
    }

    /** Whether this process opened it: a connection that came over a fork is the other process's. */
    public function isOwn(): bool
    {
        return $this->pid === getmypid();
    }

    /** @return resource for stream_select() */
    public function stream()
    {
        return $this->stream;
    }

    public function hasUnsent(): bool
    {
        return $this->out !== '';
    }

    /** Adds an encoded command to what write() sends. */
    public function queue(string $command): void
    {
        $this->out .= $command;
    }

    /** Sends as much as the socket takes. */
    public function write(): void
    {
        while ($this->out !== '') {
            $written = @fwrite($this->stream, $this->out);
            if ($written === false) {
                throw $this->lost('the connection broke');
            }
            if ($written === 0) {
                if (feof($this->stream)) {
                    throw $this->lost('the server closed the connection');
                }
                return;
            }
            $this->out = $written === strlen($this->out) ? '' : substr($this->out, $written);
        }
    }

    /** Reads what has come. */
    public function read(): void
    {
        $bytes = @fread($this->stream, self::PORTION);
        if ($bytes === false || $bytes === '') {
            if ($bytes === false || feof($this->stream)) {
                throw $this->lost('the server closed the connection');
            }
            return;
        }
        if ($this->at > 0) {
            $this->in = substr($this->in, $this->at);
            $this->needed = max(0, $this->needed - $this->at);
            $this->at = 0;
        }
        $this->in .= $bytes;
        // TLS: what was decrypted already does not wake stream_select().
        while (strlen($bytes) === self::PORTION) {
            $bytes = (string) @fread($this->stream, self::PORTION);
            $this->in .= $bytes;
        }
    }

    /** Sends commands and waits for their replies; an error reply is a DelayqException among them. @return list<mixed> */
    public function pipeline(array $commands, float $timeout): array
    {
        $replies = [];
        $this->exchange(new \ArrayIterator($commands), $replies, $timeout);
        return $replies;
    }

    /**
     * Sends commands and adds their replies to `$replies`, which has those that came when it throws. Returns how many
     * of them are errors. `$timeout` is for each wait without any progress.
     *
     * @param \Iterator<string> $commands is asked for the next ones while the server works on those before
     * @param list<mixed>       $replies
     */
    public function exchange(\Iterator $commands, array &$replies, float $timeout): int
    {
        $before = $this->errors;
        $nothing = self::nothing();
        $sizes = [];
        $sent = 0;
        $answered = 0;
        $unanswered = 0;
        $hasMore = $commands->valid();
        while ($hasMore || $answered < $sent) {
            while ($hasMore && strlen($this->out) < self::PORTION && $unanswered < self::UNANSWERED) {
                $bytes = $commands->current();
                $this->out .= $bytes;
                $unanswered += $sizes[$sent++] = strlen($bytes);
                $commands->next();
                $hasMore = $commands->valid();
            }
            if ($this->out !== '') {
                $this->write();
            }
            $canSend = $hasMore && $this->out === '' && $unanswered < self::UNANSWERED;
            if ($answered < $sent && $this->wait($canSend ? 0.0 : $timeout)) {
                $this->read();
                while ($answered < $sent && ($reply = $this->next()) !== $nothing) {
                    $replies[] = $reply;
                    $unanswered -= $sizes[$answered++];
                }
            }
        }
        return $this->errors - $before;
    }

    /** Waits until something can be read (true), or written if there is something to write (false). */
    private function wait(float $timeout): bool
    {
        $deadline = Time::now() + $timeout;
        do {
            $read = [$this->stream];
            $write = $this->out === '' ? [] : [$this->stream];
            $except = null;
            $left = max(0.0, $deadline - Time::now());
            $count = @stream_select($read, $write, $except, (int) $left, (int) (($left - (int) $left) * 1e6));
            if ($count > 0) {
                return $read !== [];
            }
            if ($timeout === 0.0) {
                return false;
            }
        } while (Time::now() < $deadline);
        throw $this->lost(sprintf('no answer within %gs', $timeout));
    }

    /** The next reply, or nothing(). Error replies are returned, not thrown. */
    public function next(): mixed
    {
        while (true) {
            if (strlen($this->in) < $this->needed) {
                return self::nothing();
            }
            if (($end = strpos($this->in, "\r\n", $this->at)) === false) {
                if (strlen($this->in) - $this->at > self::LONGEST_LINE) {
                    throw $this->lost('a line of a reply is too long');
                }
                return self::nothing();
            }
            $kind = $this->in[$this->at];
            $value = substr($this->in, $this->at + 1, $end - $this->at - 1);
            if ($kind === '$') {
                $length = $this->length($value);
                if ($length < 0) {
                    $value = null;
                } else {
                    if (strlen($this->in) < $end + $length + 4) {
                        if ($this->bytes + $length > self::LONGEST) {
                            throw $this->lost('a reply is too large');
                        }
                        $this->needed = $end + $length + 4;
                        return self::nothing();
                    }
                    if (substr_compare($this->in, "\r\n", $end + 2 + $length, 2) !== 0) {
                        throw $this->lost('a text of a reply does not end where it should');
                    }
                    $value = substr($this->in, $end + 2, $length);
                    $end += $length + 2;
                }
            } elseif ($kind === '*' || $kind === '%' || $kind === '~' || $kind === '>') {
                $missing = $this->length($value) * ($kind === '%' ? 2 : 1);
                $this->items += max(0, $missing);
                if ($this->items > self::MOST_ITEMS || count($this->open) >= self::DEEPEST) {
                    throw $this->lost('a reply has too many items');
                }
                $this->bytes += $end + 2 - $this->at;
                $this->at = $end + 2;
                if ($missing > 0) {
                    $this->open[] = [$kind, $missing, []];
                    continue;
                }
                $value = $missing < 0 ? null : [];
                $end = $this->at - 2;
            } else {
                $value = $this->scalar($kind, $value);
            }
            $this->bytes += $end + 2 - $this->at;
            $this->at = $end + 2;
            $this->needed = 0;
            if ($this->bytes > self::LONGEST) {
                throw $this->lost('a reply is too large');
            }
            // Closes every aggregate that this value completes.
            while ($this->open !== []) {
                $last = count($this->open) - 1;
                $this->open[$last][2][] = $value;
                if (--$this->open[$last][1] > 0) {
                    continue 2;
                }
                [$kind, , $items] = array_pop($this->open);
                $value = $kind === '%' ? self::map($items) : $items;
            }
            $this->items = $this->bytes = 0;
            return $value;
        }
    }

    private function number(string $digits): int
    {
        $number = (int) $digits;
        return (string) $number === $digits ? $number : throw $this->lost('a reply has a malformed number');
    }

    /** -1: null, as RESP2 writes it. */
    private function length(string $digits): int
    {
        $length = $this->number($digits);
        return $length >= -1 && $length <= 1 << 40 ? $length : throw $this->lost('a reply has an impossible length');
    }

    private function scalar(string $kind, string $value): mixed
    {
        return match ($kind) {
            '+' => $value,
            ':' => $this->number($value),
            '_' => null,
            '#' => $value === 't',
            ',' => (float) $value,
            '-' => $this->error($value),
            default => throw $this->lost('what came is not RESP3'),
        };
    }

    private function error(string $line): DelayqException
    {
        ++$this->errors;
        return DelayqException::fromReply($line);
    }

    /** @param list<mixed> $items */
    private static function map(array $items): array
    {
        $map = [];
        for ($i = 0; $i + 1 < count($items); $i += 2) {
            $map[is_scalar($items[$i]) ? (string) $items[$i] : ''] = $items[$i + 1];
        }
        return $map;
    }

    /** Tells the server that no more commands come; what it has sent can still be read. */
    public function finish(): void
    {
        @stream_socket_shutdown($this->stream, STREAM_SHUT_WR);
    }

    public function close(): void
    {
        if ($this->stream !== null && $this->isOwn()) {
            @fclose($this->stream);
        }
        $this->stream = null;
    }

    private function lost(string $why): DelayqException
    {
        return new DelayqException('unavailable', "{$this->settings->address()}: $why");
    }
}
