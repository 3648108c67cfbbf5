<?php

declare(strict_types=1);

namespace Delayq\Internal;

/**
 * The processes that run handlers.
 *
 * They are forked by a process of their own, which is forked before the worker connects to the server: so none of
 * them inherits the worker's connections, also when one that has died is replaced hours later. When the worker is
 * gone, whatever the reason, that process ends them all.
 *
 * @internal
 */
final class Processes
{
    /** So long processes may go on that are idle, or that a killed worker has left, in seconds. */
    private const LAST_WORDS = 0.5;

    /** The worker's ends, by the number of the process. @var array<int, Channel> */
    public readonly array $channels;
    public readonly Channel $control;
    private readonly int $starter;

    /** @param \Closure(Channel): never $main what each process does */
    public function __construct(private readonly int $count, private readonly \Closure $main)
    {
        $near = $far = [];
        for ($number = 0; $number < $count; ++$number) {
            [$near[$number], $far[$number]] = Channel::pair();
        }
        [$control, $farControl] = Channel::pair();
        $pid = pcntl_fork();
        if ($pid === -1) {
            throw new \RuntimeException('cannot fork');
        }
        if ($pid === 0) {
            $control->close();
            array_walk($near, static fn (Channel $channel) => $channel->close());
            try {
                $this->startOthers($farControl, $far);
            } finally {
                posix_kill(getmypid(), SIGKILL);  // nothing of the program that was forked is to be done twice
            }
        }
        $farControl->close();
        array_walk($far, static fn (Channel $channel) => $channel->close());
        $this->starter = $pid;
        $this->channels = $near;
        $this->control = $control;
        for ($number = 0; $number < $count; ++$number) {
            $this->start($number);
        }
    }

    /** Starts a process for the first time, or after the DIED of the one before. */
    public function start(int $number): void
    {
        $this->control->send(Channel::START, $number);
    }

    public function kill(int $number): void
    {
        $this->control->send(Channel::KILL, $number);
    }

    /** Ends all of them and waits for it. */
    public function end(): void
    {
        array_map(static fn (Channel $channel) => $channel->close(), $this->channels);
        $this->control->close();
        $deadline = Time::now() + 10 * self::LAST_WORDS;
        while (pcntl_waitpid($this->starter, $status, WNOHANG) === 0) {
            if (Time::now() > $deadline) {
                posix_kill($this->starter, SIGKILL);
            }
            usleep(1_000);
        }
    }

    /** @param array<int, Channel> $channels */
    private function startOthers(Channel $control, array $channels): void
    {
        posix_setsid();  // Ctrl-C in a terminal is for the worker alone
        pcntl_async_signals(true);
        foreach ([SIGTERM, SIGINT, SIGHUP, SIGCHLD] as $signal) {
            pcntl_signal($signal, static function (): void {
            }, false);
        }
        $pids = [];
        while (($frames = $control->receive()) !== null) {
            foreach ($frames as [$kind, $number]) {
                if ($kind === Channel::START && !in_array($number, $pids, true)) {
                    $this->startOne($number, $control, $channels, $pids);
                } elseif ($kind === Channel::KILL && ($pid = array_search($number, $pids, true)) !== false) {
                    posix_kill($pid, SIGKILL);
                }
            }
            while (($pid = pcntl_waitpid(-1, $status, WNOHANG)) > 0) {
                $control->send(Channel::DIED, $pids[$pid], self::describe($status));
                unset($pids[$pid]);
            }
            $control->wait(0.2);  // a child that ends interrupts this, except in the moment before
        }
        $deadline = Time::now() + self::LAST_WORDS;
        while ($pids !== []) {
            if (Time::now() > $deadline) {
                array_map(static fn (int $pid) => posix_kill($pid, SIGKILL), array_keys($pids));
            }
            $pid = pcntl_waitpid(-1, $status, WNOHANG);
            if ($pid === -1) {
                return;
            }
            unset($pids[$pid]);
            if ($pid === 0) {
                usleep(1_000);
            }
        }
    }

    /**
     * @param array<int, Channel> $channels
     * @param array<int, int>     $pids
     */
    private function startOne(int $number, Channel $control, array $channels, array &$pids): void
    {
        $channels[$number]->clear();
        $pid = pcntl_fork();
        if ($pid === -1) {
            $control->send(Channel::DIED, $number, 'cannot fork');
            return;
        }
        if ($pid > 0) {
            $pids[$pid] = $number;
            return;
        }
        $control->close();
        foreach ($channels as $other => $channel) {
            if ($other !== $number) {
                $channel->close();
            }
        }
        pcntl_signal(SIGCHLD, SIG_DFL);
        pcntl_signal(SIGHUP, SIG_DFL);
        ($this->main)($channels[$number]);
    }

    private static function describe(int $status): string
    {
        return pcntl_wifsignaled($status) ? 'signal ' . pcntl_wtermsig($status) : 'exit code ' . pcntl_wexitstatus($status);
    }
}
