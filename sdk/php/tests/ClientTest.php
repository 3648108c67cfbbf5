<?php

declare(strict_types=1);

namespace Delayq\Tests;

use Delayq\Client;
use Delayq\DelayqException;
use Delayq\Internal\Connection;
use Delayq\Internal\HandlerProcess;
use Delayq\Internal\Ids;
use Delayq\Internal\Settings;
use Delayq\Internal\Time;
use Delayq\Internal\Words;
use Delayq\LogFiles;
use Delayq\Message;
use PHPUnit\Framework\TestCase;

final class ClientTest extends TestCase
{
    private static ?Server $server = null;

    public static function tearDownAfterClass(): void
    {
        self::$server = null;
    }

    private function client(mixed ...$options): Client
    {
        self::$server ??= new Server();
        return self::$server->client(...$options);
    }

    /** Runs `$serve` with each connection in a process of its own. Returns its port. */
    private function fakeServer(\Closure $serve, int $connections): int
    {
        $listener = stream_socket_server('tcp://127.0.0.1:0');
        if (pcntl_fork() === 0) {
            for ($i = 0; $i < $connections; ++$i) {
                $stream = stream_socket_accept($listener, 10);
                if ($stream !== false) {
                    $serve($stream, $i);
                    fclose($stream);
                }
            }
            posix_kill(getmypid(), SIGKILL);
        }
        return (int) substr(strrchr(stream_socket_get_name($listener, false), ':'), 1);
    }

    protected function tearDown(): void
    {
        while (pcntl_waitpid(-1, $status, WNOHANG) > 0) {
            continue;
        }
    }

    // ---- what is on the wire

    public function testDurationsAndMoments(): void
    {
        self::assertSame('1800000ms', Time::duration(1800, 'f'));
        self::assertSame('250ms', Time::duration(0.25, 'f'));
        self::assertSame('30m', Time::duration('30m', 'f'));
        self::assertSame('93600500ms', Time::duration(\DateInterval::createFromDateString('1 day 2 hours 500 milliseconds'), 'f'));
        self::assertSame('1900000000.123', Time::moment(1900000000.1234, 'f'));
        self::assertSame('1900000000.123', Time::moment(new \DateTimeImmutable('2030-03-17T17:46:40.123456Z'), 'f'));
        self::assertSame('1900000000.000', Time::moment(1900000000, 'f'));
        self::assertSame(5400.25, Time::seconds('1h30m250ms'));
        self::assertNull(Time::seconds('soon'));
        self::assertSame('2030-03-17T17:46:40.123+00:00', Time::fromMillis(1900000000123)->format('Y-m-d\TH:i:s.vP'));
        self::assertSame('-1.250', Time::moment(Time::fromMillis(-1250), 'f'));
        foreach ([NAN, INF, 1e300] as $wrong) {
            try {
                Time::duration($wrong, 'processIn');
                self::fail();
            } catch (DelayqException $problem) {
                self::assertStringContainsString('processIn', $problem->getMessage());
            }
        }
    }

    public function testPushIsWhatTheGeneralEncoderWouldWrite(): void
    {
        $options = ['processIn' => 1.5, 'group' => 'g', 'priority' => 3, 'retry' => 5, 'backoff' => [1, '2m'], 'timeout' => 30, 'headers' => ['a' => 'b'], 'callback' => 'http://x', 'onConflict' => 'keep'];
        $words = ['PUSH', 't', '1500ms', "p\r\n", 'ID', 'i', 'KEEP', 'GROUP', 'g', 'PRI', '3', 'ATTEMPTS', '5', 'BACKOFF', '1000ms,2m', 'LEASE', '30000ms', 'HEADER', 'a', 'b', 'CALLBACK', 'http://x'];
        self::assertSame(Connection::encode($words), Words::push('t', 'i', "p\r\n", $options));
        self::assertSame(Connection::encode(['PUSH', 't', '2000ms', 'p', 'ID', 'i', 'REPLACE']), Words::push('t', 'i', 'p', ['processIn' => 2, 'group' => null]));
        self::assertSame(Connection::encode(['PUSH', 't', '0', 'p', 'ID', 'i', 'AT', '5.000']), Words::push('t', 'i', 'p', ['processAt' => 5, 'onConflict' => 'reject']));
        self::assertSame(Connection::encode(['PUSH', 't', '0', 'p', 'ID', 'i', 'UNIQUE']), Words::push('t', 'i', 'p', ['unique' => true, 'onConflict' => 'reject']));
    }

    public function testIds(): void
    {
        $ids = new Ids();
        $made = [];
        for ($i = 0; $i < 20_000; ++$i) {
            $made[] = $ids->next();
        }
        self::assertCount(20_000, array_unique($made));
        foreach ([$made[0], $made[19_999]] as $id) {
            self::assertMatchesRegularExpression('/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/', $id);
            self::assertEqualsWithDelta(microtime(true) * 1000, hexdec(substr(str_replace('-', '', $id), 0, 12)), 10_000);
        }
        $copy = clone $ids;
        $copy->forget();
        self::assertNotSame(substr($ids->next(), 0, 23), substr($copy->next(), 0, 23));
    }

    public function testReasonsAreCleanedAndCut(): void
    {
        self::assertSame("one two\nthree\tfour five", HandlerProcess::clean("one\x07two\nthree\tfour\x00five"));
        self::assertSame("a\u{FFFD}b", HandlerProcess::clean("a\xffb"));
        self::assertSame(str_repeat('€', 333), HandlerProcess::clean(str_repeat('€', 400)));
        self::assertSame(str_repeat('x', 999), HandlerProcess::clean(str_repeat('x', 999) . 'é'));
        self::assertSame(str_repeat('x', 998) . 'é', HandlerProcess::clean(str_repeat('x', 998) . 'éx'));
    }

    /** @return iterable<array{string, mixed}> */
    public static function wireReplies(): iterable
    {
        $nested = "%2\r\n$1\r\na\r\n*3\r\n:1\r\n$0\r\n\r\n_\r\n+b\r\n%1\r\n+c\r\n,1.5\r\n";
        yield ['+OK', 'OK'];
        yield [":-12", -12];
        yield ["$-1", null];
        yield ["$5\r\na\r\nbc", "a\r\nbc"];
        yield ['*0', []];
        yield ["*2\r\n*0\r\n#t", [[], true]];
        yield [substr($nested, 0, -2), ['a' => [1, '', null], 'b' => ['c' => 1.5]]];
    }

    /** @dataProvider wireReplies */
    public function testRepliesThatComeByteByByte(string $bytes, mixed $expected): void
    {
        $port = $this->fakeServer(static function ($stream) use ($bytes): void {
            fread($stream, 4096);
            fwrite($stream, "+HELLO\r\n");
            fread($stream, 4096);
            foreach (str_split("$bytes\r\n+end\r\n") as $byte) {
                fwrite($stream, $byte);
                usleep(300);
            }
        }, 1);
        $connection = Connection::open(new Settings('127.0.0.1', $port, null, null, null, 5.0, 5.0, 0.0));
        self::assertSame([$expected, 'end'], $connection->pipeline(["x\r\n", "y\r\n"], 5.0));
    }

    public function testAddresses(): void
    {
        self::assertSame('127.0.0.1:9278', (new Client())->settings()->address());
        self::assertSame('queue.example:9278', (new Client('queue.example'))->settings()->address());
        self::assertSame('[::1]:1234', (new Client('[::1]:1234'))->settings()->address());
        $old = (new Client(['host' => 'h', 'port' => 7, 'database' => 0, 'password' => 'secret']))->settings();
        self::assertSame(['h', 7, 'secret'], [$old->host, $old->port, $old->token]);
        self::assertNull((new Client(['host' => 'h', 'password' => '']))->settings()->token);
        $this->expectExceptionMessage('server:');
        new Client('http://h/');
    }

    // ---- what goes wrong

    public function testNoServer(): void
    {
        $client = new Client('127.0.0.1:1', retryFor: 0.0);
        try {
            $client->enqueue('t', '1', 'x');
            self::fail();
        } catch (DelayqException $problem) {
            self::assertSame(['unavailable', true], [$problem->getCode(), $problem->retryable]);
            self::assertStringContainsString('127.0.0.1:1', $problem->getMessage());
        }
        $results = $client->enqueueMany([['topic' => 't', 'payload' => 'x'], ['topic' => 't', 'payload' => 'y', 'what' => 1]]);
        self::assertSame(['unavailable', 'invalid'], array_map(static fn (DelayqException $problem) => $problem->getCode(), $results));
        $began = microtime(true);
        self::assertSame('unavailable', (new Client('127.0.0.1:1', retryFor: 0.3))->together(fn () => $client->get('t', '1'))[0]->getCode());
        self::assertLessThan(2.0, microtime(true) - $began);
    }

    public function testWhatIsSafeIsSentAgainAndOnlyThat(): void
    {
        $file = tempnam(sys_get_temp_dir(), 'delayq');
        // The first connection is cut after the command was read; the second one answers.
        $serve = static function ($stream, int $number) use ($file): void {
            fread($stream, 4096);
            fwrite($stream, "+HELLO\r\n");
            $command = fread($stream, 4096);
            file_put_contents($file, strtok($command, "\r\n") . ' ', FILE_APPEND);
            if ($number === 1) {
                fwrite($stream, "$1\r\n1\r\n");
                fread($stream, 1);
            }
        };
        $client = new Client('127.0.0.1:' . $this->fakeServer($serve, 2));
        self::assertSame('1', $client->enqueue('t', '1', 'x'));
        self::assertSame('*7 *7 ', file_get_contents($file));
        $unsafe = [
            static fn (Client $client) => $client->runSchedule('x'),
            static fn (Client $client) => $client->removeSchedule('x'),
            static fn (Client $client) => $client->pop('t'),
            static fn (Client $client) => $client->enqueue('t', '1', 'x', onConflict: 'reject'),
        ];
        foreach ($unsafe as $call) {
            $client = new Client('127.0.0.1:' . $this->fakeServer($serve, 1), retryFor: 5.0);
            $began = microtime(true);
            try {
                $call($client);
                self::fail();
            } catch (DelayqException $problem) {
                self::assertSame('unavailable', $problem->getCode());
                self::assertStringContainsString('not sent again', $problem->getMessage());
            }
            self::assertLessThan(2.0, microtime(true) - $began);
        }
        unlink($file);
    }

    public function testRetryableErrorsAreRetriedAsTheServerSays(): void
    {
        $port = $this->fakeServer(static function ($stream): void {
            fread($stream, 4096);
            fwrite($stream, "+HELLO\r\n");
            fread($stream, 4096);
            fwrite($stream, "-OVERLOADED too much (try again in 300ms)\r\n$1\r\n2\r\n");
            fread($stream, 4096);
            fwrite($stream, "$1\r\n1\r\n");
        }, 1);
        $began = microtime(true);
        $results = (new Client("127.0.0.1:$port"))->enqueueMany([['topic' => 't', 'id' => '1', 'payload' => ''], ['topic' => 't', 'id' => '2', 'payload' => '']]);
        self::assertSame(['1', '2'], $results);
        self::assertGreaterThan(0.29, microtime(true) - $began);
    }

    public function testAServerThatDoesNotAnswer(): void
    {
        $port = $this->fakeServer(static function ($stream): void {
            fread($stream, 4096);
            fwrite($stream, "+HELLO\r\n");
            sleep(3);
        }, 1);
        $began = microtime(true);
        $this->expectExceptionMessage('no answer within 0.2s');
        try {
            (new Client("127.0.0.1:$port", timeout: 0.2, retryFor: 0.0))->get('t', '1');
        } finally {
            self::assertLessThan(2.0, microtime(true) - $began);
        }
    }

    public function testSomethingThatIsNotDelayq(): void
    {
        $port = $this->fakeServer(static fn ($stream) => fwrite($stream, "SSH-2.0-OpenSSH\r\n"), 1);
        $this->expectExceptionMessage('not RESP3');
        (new Client("127.0.0.1:$port", retryFor: 0.0))->get('t', '1');
    }

    public function testAServerThatWasStartedAgainIsFoundByItself(): void
    {
        $server = new Server();
        $client = $server->client();
        $client->enqueue('t', '1', 'x', processIn: 60);
        $server->kill();
        $server->start();
        self::assertSame('x', $client->get('t', '1')->payload);
    }

    // ---- what works

    public function testTogetherKeepsKeysOrderAndErrors(): void
    {
        $client = $this->client();
        $results = $client->together(
            a: fn () => [$client->enqueue('together', '1', 'x', processIn: 60), $client->get('together', '1')->payload],
            b: fn () => 'no call at all',
            c: fn () => $client->enqueue('', '1', 'x'),
        );
        self::assertSame([['1', 'x'], 'no call at all', 'invalid'], [$results['a'], $results['b'], $results['c']->getCode()]);
        self::assertSame([], $client->together());
    }

    public function testManyFromAGeneratorWithLargePayloads(): void
    {
        $client = $this->client();
        $results = $client->enqueueMany((static function (): \Generator {
            for ($i = 0; $i < 60; ++$i) {
                yield "k$i" => ['topic' => 'large', 'id' => "$i", 'payload' => str_repeat(chr(65 + $i % 26), 300_000), 'processIn' => 60];
            }
        })());
        self::assertSame('59', $results['k59']);
        self::assertSame(str_repeat('F', 300_000), $client->get('large', '5')->payload);
        $all = $client->together(...array_map(static fn (int $i) => static fn () => strlen($client->get('large', "$i")->payload), range(0, 59)));
        self::assertSame(array_fill(0, 60, 300_000), $all);
    }

    public function testValuesOfAWrongTypeAreErrorsOfTheirItem(): void
    {
        $jobs = [
            ['topic' => 7, 'payload' => 'x'], ['topic' => 't', 'payload' => 'x', 'processIn' => []], 'no array', ['payload' => 'x'],
            ['topic' => 't', 'payload' => 'x', 'onConflict' => []], ['topic' => 't', 'payload' => 'x', 'headers' => ['a' => []]],
            ['topic' => 't', 'payload' => 'x', 'group' => new \stdClass()], ['topic' => 'wrong', 'id' => 5, 'payload' => 'x', 'processIn' => 60],
        ];
        $results = $this->client()->enqueueMany($jobs);
        self::assertSame('5', array_pop($results));
        foreach (['topic', 'value', 'job', 'topic', 'onConflict', 'headers.a', 'group'] as $i => $field) {
            self::assertSame('invalid', $results[$i]->getCode());
            self::assertStringContainsString($field, $results[$i]->getMessage());
        }
    }

    public function testACallInTheMiddleOfAnotherOne(): void
    {
        $client = $this->client();
        $results = $client->enqueueMany((static function () use ($client): \Generator {
            for ($i = 0; $i < 3; ++$i) {
                yield ['topic' => 'nested', 'id' => "$i", 'payload' => $client->enqueue('nested', "inner$i", 'x', processIn: 60), 'processIn' => 60];
            }
        })());
        self::assertSame(['0', '1', '2'], $results);
        self::assertSame('inner2', $client->get('nested', '2')->payload);
        try {
            $client->enqueueMany((static function (): \Generator {
                yield ['topic' => 'nested', 'id' => '4', 'payload' => 'x', 'processIn' => 60];
                throw new \LogicException('no more');
            })());
            self::fail();
        } catch (\LogicException) {
            self::assertSame('inner1', $client->get('nested', '1')->payload, 'the client goes on');
        }
    }

    public function testPayloadsThatAreNotStringsAreJson(): void
    {
        $client = $this->client();
        foreach ([[1, 2.0, 'é/'], ['a' => null], 5, true, null] as $i => $payload) {
            $client->enqueue('json', "$i", $payload, processIn: 60);
            self::assertSame($payload, json_decode($client->get('json', "$i")->payload, true));
        }
        $this->expectExceptionMessage('payload:');
        $client->enqueue('json', 'bad', ["\xff"]);
    }

    public function testAClientAfterAFork(): void
    {
        $client = $this->client();
        $client->enqueue('fork', 'parent', 'x', processIn: 60);
        if (($pid = pcntl_fork()) === 0) {
            for ($i = 0; $i < 50; ++$i) {
                $client->enqueue('fork', "child$i", 'x', processIn: 60);
            }
            $client->enqueueMany([['topic' => 'fork', 'payload' => 'made', 'processIn' => 60]]);
            posix_kill(getmypid(), SIGKILL);
        }
        for ($i = 0; $i < 50; ++$i) {
            self::assertSame('parent', $client->get('fork', 'parent')->id);
        }
        pcntl_waitpid($pid, $status);
        self::assertSame('x', $client->get('fork', 'child49')->payload);
    }

    public function testTheVerbsOfDelayQ(): void
    {
        $client = $this->client();
        $message = new Message(['id' => 'm1', 'topic' => 'dq', 'body' => '{"uid":1}', 'ttr' => 5, 'maxtryes' => 2]);
        self::assertTrue($client->push($message));
        self::assertFalse($client->push($message), 'the id is in use');
        self::assertFalse($client->push((new Message())->setId('m1')->setTopic('other')->setBody('x')), 'in another topic, too');
        $popped = $client->pop('dq');
        self::assertSame(['m1', 'dq', '{"uid":1}', 1], [$popped->id, $popped->topic, $popped->body, $popped->tryes]);
        self::assertEqualsWithDelta(microtime(true) + 5, (float) $client->get('dq', 'm1')->until->format('U.v'), 2);
        self::assertFalse($client->pop('dq'));
        self::assertTrue($client->finish($popped));
        self::assertFalse($client->finish($popped));
        self::assertSame('done', $client->get('dq', 'm1')->state);

        $client->push(new Message(['jobid' => 'm2', 'topic' => 'dq', 'data' => 'later']), 1);
        $began = microtime(true);
        self::assertSame('m2', $client->bPop('dq', 5)->id);
        self::assertGreaterThan(0.7, microtime(true) - $began);
        self::assertTrue($client->finish('m2'));
        self::assertFalse($client->bPop('dq', 0.2));

        $client->push(new Message(['id' => 'm3', 'topic' => 'dq', 'body' => 'x']), 60);
        self::assertTrue($client->remove('m3'));
        self::assertFalse($client->remove('m3'));
        $this->expectExceptionMessage('has not popped');
        $client->finish('m3');
    }

    public function testLogFiles(): void
    {
        $directory = sys_get_temp_dir() . '/delayq-log-' . bin2hex(random_bytes(6));
        $log = new LogFiles("$directory/logs");
        $log->info('done', ['topic' => 'order', 'id' => '1', 'note' => "two\nlines"]);
        $log->warning('failed {id}', ['topic' => 'order', 'id' => '2']);
        $log->error('lost', ['exception' => new \RuntimeException('why')]);
        $log->info('up', ['topic' => '../../etc']);
        (new LogFiles("$directory/logs", daily: true))->info('daily', ['topic' => 'order']);
        $day = date('-Y-m-d');
        $files = array_map('basename', glob("$directory/logs/{,.}*.log", GLOB_BRACE));
        sort($files);
        self::assertSame(['_._.._etc_access.log', 'consumer_error.log', "order_access$day.log", 'order_access.log', 'order_error.log'], $files);
        self::assertMatchesRegularExpression('/^\d{4}-\S+ info done topic=order id=1 note="two\\\\nlines"\n$/D', file_get_contents("$directory/logs/order_access.log"));
        self::assertStringContainsString('warning failed 2 topic=order', file_get_contents("$directory/logs/order_error.log"));
        self::assertStringContainsString('RuntimeException: why', file_get_contents("$directory/logs/consumer_error.log"));
        if (interface_exists(\Psr\Log\LoggerInterface::class)) {
            self::assertInstanceOf(\Psr\Log\LoggerInterface::class, $log);
        }
        exec('rm -rf ' . escapeshellarg($directory));
    }
}
