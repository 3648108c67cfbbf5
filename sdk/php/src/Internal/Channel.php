<?php

declare(strict_types=1);

namespace Delayq\Internal;

/**
 * One end of a socket pair between a worker and one of its processes. What goes over it are frames: a kind, the
 * number of a job (or of a process), and a body.
 *
 * @internal
 */
final class Channel
{
    // to a process that runs handlers
    public const JOB = 1;
    public const REASON = 2;
    public const LEASE = 3;
    // from it
    public const READY = 10;
    public const DONE = 11;
    public const FAILED = 12;
    public const ASK_LEASE = 13;
    public const WANT_SIGNAL = 14;
    public const STOP = 15;
    public const LEAVING = 16;
    // to and from the process that starts the others
    public const START = 20;
    public const KILL = 21;
    public const DIED = 22;

    private const HEADER = 13;

    private string $in = '';
    private string $out = '';

    /** @param resource $stream */
    public function __construct(private $stream)
    {
        stream_set_blocking($stream, false);
        stream_set_read_buffer($stream, 0);
        stream_set_write_buffer($stream, 0);
    }

    /** @return array{self, self} */
    public static function pair(): array
    {
        $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        if ($pair === false) {
            throw new \RuntimeException('cannot make a socket pair');
        }
        return [new self($pair[0]), new self($pair[1])];
    }

    /** @return resource */
    public function stream()
    {
        return $this->stream;
    }

    public function hasUnsent(): bool
    {
        return $this->out !== '';
    }

    public function send(int $kind, int $number, string $body = ''): void
    {
        $this->out .= pack('VCP', strlen($body), $kind, $number) . $body;
        $this->write();
    }

    /** Sends as much as the socket takes. To an end that was closed nothing is sent. */
    public function write(): void
    {
        $written = @fwrite($this->stream, $this->out);
        if ($written === false) {
            $this->out = '';
        } elseif ($written > 0) {
            $this->out = substr($this->out, $written);
        }
    }

    /** Sends all, and waits for it. */
    public function flush(): void
    {
        while ($this->out !== '') {
            $read = $except = null;
            $write = [$this->stream];
            @stream_select($read, $write, $except, 1);
            $this->write();
        }
    }

    /**
     * The frames that have come whole: [kind, number, body] each. Null: the other end was closed.
     *
     * @return list<array{int, int, string}>|null
     */
    public function receive(): ?array
    {
        $bytes = @fread($this->stream, 65_536);
        if (($bytes === '' || $bytes === false) && feof($this->stream)) {
            return null;
        }
        $this->in .= $bytes;
        $frames = [];
        $at = 0;
        while (strlen($this->in) >= $at + self::HEADER) {
            ['length' => $length, 'kind' => $kind, 'number' => $number] = unpack('Vlength/Ckind/Pnumber', $this->in, $at);
            if (strlen($this->in) < $at + self::HEADER + $length) {
                break;
            }
            $frames[] = [$kind, $number, substr($this->in, $at + self::HEADER, $length)];
            $at += self::HEADER + $length;
        }
        if ($at > 0) {
            $this->in = substr($this->in, $at);
        }
        return $frames;
    }

    /** Waits until something has come, or a signal, or so many seconds. */
    public function wait(?float $seconds): void
    {
        $read = [$this->stream];
        $write = $this->out === '' ? null : [$this->stream];
        $except = null;
        $whole = $seconds === null ? null : (int) $seconds;
        @stream_select($read, $write, $except, $whole, $seconds === null ? null : (int) (($seconds - $whole) * 1e6));
        if ($write !== null && $write !== []) {
            $this->write();
        }
    }

    /** Throws away what a process that is no more has not read, or has not sent whole. */
    public function clear(): void
    {
        while (@fread($this->stream, 65_536) !== '' && !feof($this->stream)) {
            continue;
        }
        $this->in = $this->out = '';
    }

    public function close(): void
    {
        if (is_resource($this->stream)) {
            fclose($this->stream);
        }
    }
}
