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
            if ($name === 'replies') {
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
