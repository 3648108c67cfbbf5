<?php

declare(strict_types=1);

namespace Delayq\Tests;

use Delayq\DelayqException;
use PHPUnit\Framework\TestCase;

/**
 * The scenarios of sdk/spec, which every client library passes.
 */
final class ScenariosTest extends TestCase
{
    private static ?Server $server = null;
    private static string $serverFile = '';

    public static function tearDownAfterClass(): void
    {
        self::$server = null;
    }

    /** @return iterable<string, array{string, string, \stdClass}> */
    public static function scenarios(): iterable
    {
        $files = glob(dirname(__DIR__, 2) . '/spec/*.json');
        self::assertGreaterThan(5, count($files));
        foreach ($files as $file) {
            $name = basename($file, '.json');
            $content = json_decode(file_get_contents($file), false, 512, JSON_THROW_ON_ERROR);
            if ($name === 'replies' || $name === 'wire') {
                continue;
            }
            Scenario::checkKeys($content, ['about', 'server', 'scenarios'], $file);
            foreach ($content->scenarios as $scenario) {
                Scenario::checkKeys($scenario, ['name', 'clients', 'steps'], $file);
                yield "$name: $scenario->name" => [$name, $content->server ?? '', $scenario];
            }
        }
    }

    /** @dataProvider scenarios */
    public function testScenario(string $file, string $config, \stdClass $scenario): void
    {
        if (self::$serverFile !== $file) {
            self::$server = null;
            self::$server = new Server($config);
            self::$serverFile = $file;
        }
        (new Scenario(self::$server, (array) ($scenario->clients ?? [])))->run($scenario->steps);
        $this->addToAssertionCount(1);
    }

    /** @return iterable<string, array{\stdClass}> */
    public static function calls(): iterable
    {
        $table = json_decode(file_get_contents(dirname(__DIR__, 2) . '/spec/wire.json'), false, 512, JSON_THROW_ON_ERROR);
        Scenario::checkKeys($table, ['about', 'calls'], 'wire.json');
        foreach ($table->calls as $call) {
            Scenario::checkKeys($call, ['name', 'client', 'server', 'step', 'sent'], 'wire.json');
            yield $call->name => [$call];
        }
    }

    /** @dataProvider calls */
    public function testCall(\stdClass $call): void
    {
        $peer = proc_open(['python3', '-B', dirname(__DIR__, 2) . '/spec/wire.py', $call->name], [['pipe', 'r'], ['pipe', 'w']], $pipes);
        $began = microtime(true);
        try {
            $server = new class ((int) fgets($pipes[1])) {
                public readonly string $directory;

                public function __construct(public readonly int $port)
                {
                    $this->directory = sys_get_temp_dir() . '/delayq-php-wire-' . bin2hex(random_bytes(6));
                    mkdir($this->directory, 0o700);
                }

                public function client(mixed ...$options): \Delayq\Client
                {
                    return new \Delayq\Client("127.0.0.1:$this->port", ...$options);
                }
            };
            $call->step->client = 'it';
            (new Scenario($server, ['it' => $call->client ?? new \stdClass()]))->run([$call->step]);
        } finally {
            fclose($pipes[0]);
            $difference = stream_get_contents($pipes[1]);
            $code = proc_close($peer);
            exec('rm -rf ' . escapeshellarg($server->directory));
        }
        self::assertSame(0, $code, $difference);
        self::assertLessThan(30.0, microtime(true) - $began);
    }

    /** @return iterable<string, array{\stdClass}> */
    public static function replies(): iterable
    {
        $table = json_decode(file_get_contents(dirname(__DIR__, 2) . '/spec/replies.json'), false, 512, JSON_THROW_ON_ERROR);
        Scenario::checkKeys($table, ['about', 'replies'], 'replies.json');
        foreach ($table->replies as $row) {
            Scenario::checkKeys($row, ['line', 'code', 'message', 'retryable', 'retry_after'], 'replies.json');
            yield $row->line => [$row];
        }
    }

    /** @dataProvider replies */
    public function testErrorReply(\stdClass $row): void
    {
        $error = DelayqException::fromReply(substr($row->line, 1));
        self::assertSame($row->code, $error->getCode());
        self::assertSame($row->message, $error->getMessage());
        self::assertSame($row->retryable, $error->retryable);
        self::assertSame($row->retry_after, $error->retryAfter === null ? null : (int) round($error->retryAfter * 1000));
    }
}
