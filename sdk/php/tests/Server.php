<?php

declare(strict_types=1);

namespace Delayq\Tests;

use Delayq\Client;

/**
 * A `delayq serve` process with a data directory of its own. It ends with the object.
 */
final class Server
{
    private const DEADLINE = 60.0;

    public readonly string $directory;
    public int $port = 0;
    /** @var resource|null */
    private $process = null;
    private readonly int $owner;

    /** @param string $config TOML */
    public function __construct(private readonly string $config = '')
    {
        $this->owner = getmypid();
        $this->directory = sys_get_temp_dir() . '/delayq-php-' . bin2hex(random_bytes(6));
        mkdir($this->directory, 0o700);
        $this->start();
    }

    /** Starts it, again on the same port if it had one. */
    public function start(): void
    {
        file_put_contents("$this->directory/server.toml", $this->config);
        $program = getenv('DELAYQ') ?: dirname(__DIR__, 3) . '/build/release/delayq';
        $command = [
            $program, 'serve', '--config', "$this->directory/server.toml", '--resp', "127.0.0.1:$this->port", '--http', '127.0.0.1:0',
            '--data', "$this->directory/data", '--log-level', 'warn',
        ];
        $process = proc_open($command, [['file', '/dev/null', 'r'], ['pipe', 'w'], ['file', "$this->directory/log", 'a']], $pipes, $this->directory);
        if ($process === false) {
            throw new \RuntimeException("cannot start $program");
        }
        $this->process = $process;
        stream_set_blocking($pipes[1], false);
        $said = '';
        $deadline = microtime(true) + self::DEADLINE;
        while (preg_match('/redis-cli (?:--tls )?-p (\d+) /', $said, $found) !== 1) {
            $read = [$pipes[1]];
            $write = $except = null;
            stream_select($read, $write, $except, 1);
            $said .= fread($pipes[1], 4096);
            if (feof($pipes[1]) || microtime(true) > $deadline) {
                throw new \RuntimeException("the server did not start: $said" . file_get_contents("$this->directory/log"));
            }
        }
        $this->port = (int) $found[1];
    }

    public function kill(): void
    {
        if ($this->process !== null) {
            proc_terminate($this->process, SIGKILL);
            proc_close($this->process);
            $this->process = null;
        }
    }

    public function __destruct()
    {
        if ($this->owner === getmypid()) {
            $this->kill();
            exec('rm -rf ' . escapeshellarg($this->directory));
        }
    }

    /** @param mixed ...$options of the client */
    public function client(mixed ...$options): Client
    {
        return new Client("127.0.0.1:$this->port", ...$options);
    }
}
