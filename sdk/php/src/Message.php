<?php

declare(strict_types=1);

namespace Delayq;

/**
 * A job as the clients of DelayQ know it: what Client::push() takes and Client::pop() returns.
 *
 * `new Message(['id' => '1', 'topic' => 'close_order', 'body' => '{"uid":1}'])`; DelayQ's own names `jobid`, `data`
 * and `maxtryes` are understood, too.
 */
final class Message
{
    /** Seconds, as in DelayQ. */
    public const DEFAULT_TTR = 20;

    public string $id = '';
    public string $topic = '';
    public string $body = '';
    /** For so many seconds a popped job is its consumer's; then it has failed once. */
    public int $ttr = self::DEFAULT_TTR;
    /** How often it is tried in all; null: as its topic says. */
    public ?int $maxTryes = null;
    /** How long it waits after each failure, in seconds: one number, or several. @var int|list<int>|null */
    public int|array|null $retry = null;
    /** Of a popped message: the number of this attempt. */
    public int $tryes = 0;
    /** Of a popped message: what Client::finish() needs. */
    public ?string $lease = null;

    /** @param array<string, mixed> $values */
    public function __construct(array $values = [])
    {
        $names = ['jobid' => 'id', 'data' => 'body', 'maxtryes' => 'maxTryes'];
        foreach ($values as $name => $value) {
            $name = $names[$name] ?? $name;
            if (!property_exists($this, $name)) {
                throw new DelayqException('invalid', "$name: a message has no such value");
            }
            $this->$name = in_array($name, ['id', 'topic', 'body'], true) ? (string) $value : $value;
        }
    }

    public function setId(string $id): self
    {
        $this->id = $id;
        return $this;
    }

    public function setTopic(string $topic): self
    {
        $this->topic = $topic;
        return $this;
    }

    public function setBody(string $body): self
    {
        $this->body = $body;
        return $this;
    }
}
