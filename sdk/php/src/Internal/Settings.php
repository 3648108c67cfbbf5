<?php

declare(strict_types=1);

namespace Delayq\Internal;

/**
 * How to reach a server.
 *
 * @internal
 */
final class Settings
{
    /** @param array<string, mixed>|null $tls options of PHP's ssl context; null: no TLS */
    public function __construct(
        public readonly string $host,
        public readonly int $port,
        #[\SensitiveParameter] public readonly ?string $token,
        public readonly ?string $tokenName,
        public readonly ?array $tls,
        public readonly float $connectTimeout,
        public readonly float $timeout,
        public readonly float $retryFor,
    ) {
    }

    public function address(): string
    {
        return (str_contains($this->host, ':') ? "[$this->host]" : $this->host) . ":$this->port";
    }
}
