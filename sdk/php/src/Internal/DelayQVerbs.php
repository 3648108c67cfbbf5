<?php

declare(strict_types=1);

namespace Delayq\Internal;

use Delayq\DelayqException;
use Delayq\Message;

/**
 * The verbs of DelayQ's clients, for code that was written for them: part of Client.
 *
 * @internal
 */
trait DelayQVerbs
{
    /** Of the messages that this client has popped, so that finish() can find it by id. @var array<string, string> */
    private array $leases = [];

    /**
     * Adds a message that is due after so many seconds. Returns false if its id is in use, also in another topic.
     *
     * @param int $readyMaxLifetime is taken for old code and ignored: a ready job stays until it is popped
     */
    public function push(Message $message, int|float $delayTime = 0, int $readyMaxLifetime = 604800): bool
    {
        if ($message->id === '' || $message->topic === '') {
            throw new DelayqException('invalid', 'id, topic: a message needs both');
        }
        $options = [
            'processIn' => $delayTime, 'timeout' => $message->ttr <= 0 ? Message::DEFAULT_TTR : $message->ttr,
            'retry' => $message->maxTryes, 'backoff' => $message->retry, 'onConflict' => 'reject',
        ];
        $encode = static fn (bool $unique): string => Words::push($message->topic, $message->id, $message->body, $options + ['unique' => $unique]);
        try {
            try {
                $this->ask($encode(true), false);
            } catch (DelayqException $problem) {
                if ($problem->getCode() !== 'forbidden') {
                    throw $problem;
                }
                $this->ask($encode(false), false);  // a token for some topics may not look into the others
            }
        } catch (DelayqException $problem) {
            if ($problem->getCode() === 'conflict') {
                return false;
            }
            throw $problem;
        }
        return true;
    }

    /** Takes a message that is due, or returns false. It is this consumer's for its `ttr`: call finish(). */
    public function pop(string $topic): Message|false
    {
        return $this->popOne(['POP', $topic], 0.0);
    }

    /** The same, and waits for one. @param int|float $timeout seconds; 0: 30 */
    public function bPop(string $topic, int|float $timeout = 0): Message|false
    {
        $wait = $timeout > 0 ? $timeout : 30;  // DelayQ's own
        return $this->popOne(['POP', $topic, 'WAIT', Time::duration($wait, 'timeout')], (float) $wait);
    }

    /** @param list<string> $words */
    private function popOne(array $words, float $wait): Message|false
    {
        $jobs = $this->command($words, false, $wait);
        if ($jobs === []) {
            return false;
        }
        [$lease, $topic, $id, $body, $attempt] = $jobs[0];
        unset($this->leases[$id]);
        $this->leases[$id] = $lease;
        if (count($this->leases) > 10_000) {  // of messages that were never finished
            unset($this->leases[array_key_first($this->leases)]);
        }
        return new Message(['id' => $id, 'topic' => $topic, 'body' => $body, 'tryes' => $attempt, 'lease' => $lease]);
    }

    /** Cancels a message by its id. Returns false if none of that id waits or runs. A running one is not retried. */
    public function remove(string $id): bool
    {
        return in_array($this->command(['CANCEL', $id]), ['cancelled', 'reserved'], true);
    }

    /**
     * Marks a popped message as done.
     *
     * @param Message|string $message what pop() has returned, or its id if this client has popped it
     * @return bool false: its ttr had ended before, and somebody else may have it
     */
    public function finish(Message|string $message): bool
    {
        $id = is_string($message) ? $message : $message->id;
        $lease = is_string($message) ? ($this->leases[$id] ?? null) : $message->lease;
        if ($lease === null) {
            throw new DelayqException('not_found', "id: this client has not popped \"$id\"");
        }
        $isDone = $this->command(['ACK', $lease]) === 1;
        unset($this->leases[$id]);
        return $isDone;
    }
}
