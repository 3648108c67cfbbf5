<?php

declare(strict_types=1);

namespace Delayq;

use Delayq\Internal\Time;

/**
 * What every call throws when it fails. The codes are the same in every client library.
 *
 * | code | means |
 * |---|---|
 * | `invalid` | the request is malformed or out of range; the message names the field |
 * | `too_large` | a payload or a batch is above its limit |
 * | `conflict` | the id is in use, or the job is in a state that does not allow this |
 * | `not_found` | no such job or schedule |
 * | `stale_lease` | the lease is not the current one any more |
 * | `overloaded`, `disk_full` | a limit was reached; try again later |
 * | `unavailable` | no connection, no answer in time, or the server cannot work now |
 * | `stopping` | the server is shutting down |
 * | `unauthorized`, `forbidden` | no token or a wrong one; a token that does not allow this |
 * | `corrupt`, `internal` | stored data is damaged; an answer that is not understood |
 */
class DelayqException extends \RuntimeException
{
    private const CODES = [
        'INVALID' => 'invalid', 'TOOLARGE' => 'too_large', 'CONFLICT' => 'conflict', 'NOTFOUND' => 'not_found',
        'STALELEASE' => 'stale_lease', 'OVERLOADED' => 'overloaded', 'DISKFULL' => 'disk_full',
        'UNAVAILABLE' => 'unavailable', 'STOPPING' => 'stopping', 'NOAUTH' => 'unauthorized',
        'NOPERM' => 'forbidden', 'CORRUPT' => 'corrupt', 'INTERNAL' => 'internal',
    ];
    private const RETRYABLE = ['overloaded', 'disk_full', 'unavailable', 'stopping'];

    /** Whether the same call may succeed later without being changed. */
    public readonly bool $retryable;
    /** When it is worth trying again, in seconds, if the server said so. */
    public readonly ?float $retryAfter;

    /**
     * @param string $code one of the codes above; getCode() returns it
     */
    public function __construct(string $code, string $message, ?float $retryAfter = null, ?\Throwable $previous = null)
    {
        parent::__construct($message, 0, $previous);
        $this->code = $code;
        $this->retryable = in_array($code, self::RETRYABLE, true);
        $this->retryAfter = $retryAfter;
    }

    /**
     * What an error reply of the server means.
     *
     * @param string $line the reply without its `-` and its end of line
     * @internal
     */
    public static function fromReply(string $line): self
    {
        [$word, $text] = explode(' ', $line, 2) + [1 => ''];
        $code = self::CODES[$word] ?? null;
        if ($code === null) {
            return new self('internal', $line);
        }
        $after = null;
        if (preg_match('/\(try again in (\S+?)\)/', $text, $found) === 1) {
            $after = Time::seconds($found[1]);
        }
        return new self($code, $text, $after);
    }
}
