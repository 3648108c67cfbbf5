<?php

declare(strict_types=1);

namespace Delayq\Internal;

use Delayq\Dead;
use Delayq\Job;
use Delayq\RetryIn;

/**
 * What a process does that runs handlers: one job at a time, until the worker closes its end.
 *
 * @internal
 */
final class HandlerProcess
{
    private const REASON_BYTES = 1_000;

    private int $number = 0;
    private bool $isRunning = false;
    private ?string $reason = null;
    private ?\Closure $onStop = null;
    private bool $isReading = false;
    private bool $wasSignalled = false;
    /** The answer to ASK_LEASE: null if none has come, 0 if the lease is lost. */
    private ?int $leaseUntil = null;
    /** @var list<array{int, string}> */
    private array $jobs = [];

    /**
     * @param \Closure(Job): void $handle
     * @param int $most end after so many jobs; 0: never
     */
    public function __construct(private readonly Channel $channel, private readonly \Closure $handle, private readonly int $most)
    {
    }

    public function run(): never
    {
        while (ob_get_level() > 0) {
            ob_end_clean();  // what it has is the program's that was forked
        }
        register_shutdown_function($this->dieInHandler(...));
        $this->channel->send(Channel::READY, getmypid());
        for ($count = 1; ; ++$count) {
            while ($this->jobs === []) {
                $this->channel->wait(null);
                $this->read();
            }
            [$number, $body] = array_shift($this->jobs);
            if ($count === $this->most) {
                $this->channel->send(Channel::LEAVING, $number);
            }
            $this->runOne($number, unserialize($body, ['allowed_classes' => false]));
            $this->channel->flush();
            if ($count === $this->most) {
                exit(0);
            }
        }
    }

    /** Asks the worker to stop. */
    public function stopWorker(): void
    {
        $this->channel->send(Channel::STOP, $this->number);
    }

    private function runOne(int $number, array $values): void
    {
        [$topic, $id, $payload, $attempt, $due, $headers] = $values;
        $this->number = $number;
        $this->reason = $this->leaseUntil = null;
        $job = new Job($topic, $id, $payload, $attempt, Time::fromMillis($due), $headers, $this->waitForReason(...), $this->askLease(...), $this->setOnStop(...));
        Job::setRunning($job);
        $this->isRunning = true;
        try {
            ($this->handle)($job);
            $failure = null;
        } catch (RetryIn $problem) {
            $failure = [self::clean($problem->getMessage()), $problem->delay, false];
        } catch (Dead $problem) {
            $failure = [self::clean($problem->getMessage()), null, true];
        } catch (\Throwable $problem) {
            $failure = [self::clean($problem::class . ': ' . $problem->getMessage()), null, false];
        }
        $this->isRunning = false;
        $this->onStop = null;
        Job::setRunning(null);
        if ($failure === null) {
            $this->channel->send(Channel::DONE, $number);
            return;
        }
        try {
            $failure[1] = $failure[1] === null ? null : Time::duration($failure[1], 'delay');
        } catch (\Throwable) {
            $failure[1] = null;
        }
        $this->channel->send(Channel::FAILED, $number, serialize($failure));
    }

    /** A handler that calls exit(), or that PHP cannot go on with. */
    private function dieInHandler(): void
    {
        if (!$this->isRunning) {
            return;
        }
        $error = error_get_last();
        $isFatal = $error !== null && ($error['type'] & (E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR)) !== 0;
        $reason = $isFatal ? 'fatal error: ' . strtok($error['message'], "\n") : 'the handler called exit()';
        $this->channel->send(Channel::LEAVING, $this->number);
        $this->channel->send(Channel::FAILED, $this->number, serialize([self::clean($reason), null, false]));
        $this->channel->flush();
    }

    private function read(): void
    {
        $this->isReading = true;
        do {
            $this->wasSignalled = false;
            $frames = $this->channel->receive();
            if ($frames === null) {
                $this->isRunning = false;
                exit(0);
            }
            foreach ($frames as [$kind, $number, $body]) {
                if ($kind === Channel::JOB) {
                    $this->jobs[] = [$number, $body];
                } elseif ($number === $this->number && $kind === Channel::REASON) {
                    $this->reason ??= $body;
                } elseif ($number === $this->number && $kind === Channel::LEASE) {
                    $this->leaseUntil = (int) $body;
                }
            }
        } while ($this->wasSignalled);
        $this->isReading = false;
        if ($this->reason !== null && $this->onStop !== null && $this->isRunning) {
            $callback = $this->onStop;
            $this->onStop = null;
            $callback($this->reason);
        }
    }

    private function waitForReason(float $seconds): ?string
    {
        $deadline = Time::now() + $seconds;
        $this->read();
        while ($this->reason === null && ($left = $deadline - Time::now()) > 0) {
            $this->channel->wait($left);
            $this->read();
        }
        return $this->reason;
    }

    private function askLease(): ?int
    {
        $this->leaseUntil = null;
        $this->channel->send(Channel::ASK_LEASE, $this->number);
        while ($this->leaseUntil === null) {
            $this->channel->wait(null);
            $this->read();
        }
        return $this->leaseUntil === 0 ? null : $this->leaseUntil;
    }

    private function setOnStop(\Closure $callback): void
    {
        $this->onStop = $callback;
        pcntl_async_signals(true);
        pcntl_signal(SIGUSR1, function (): void {
            $this->wasSignalled = true;
            if (!$this->isReading) {
                $this->read();
            }
        });
        $this->channel->send(Channel::WANT_SIGNAL, $this->number);
        $this->read();
    }

    /** A text as the server takes it for a reason. */
    public static function clean(string $text): string
    {
        $text = substr($text, 0, 4 * self::REASON_BYTES);
        $text = self::toUtf8($text);
        $text = preg_replace('/[^\P{Cc}\t\n]/u', ' ', $text);
        $text = substr($text, 0, self::REASON_BYTES);
        return preg_replace('/(?:[\xC0-\xDF]|[\xE0-\xEF][\x80-\xBF]?|[\xF0-\xF7][\x80-\xBF]{0,2})$/D', '', $text);
    }

    /** Replaces what is no UTF-8 by U+FFFD, without mbstring. */
    private static function toUtf8(string $text): string
    {
        return preg_match('//u', $text) === 1 ? $text : json_decode(json_encode($text, JSON_INVALID_UTF8_SUBSTITUTE));
    }
}
