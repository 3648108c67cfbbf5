<?php

declare(strict_types=1);

namespace Delayq\Tests;

use PHPUnit\Framework\TestCase;

/**
 * The snippets of README.md and the programs in examples/ run as they are.
 */
final class SnippetsTest extends TestCase
{
    /** What workers are given, and what they must print. */
    private const JOBS = [
        'order.close' => ['{"uid":8}', 'closing 1 of user 8'],
        'mail.send' => ['{"to":"a@example.org","urgent":1}', 'attempt 1: a mail to a@example.org'],
        'video.convert' => ['x', 'video.convert 1: 0.3 s'],
        'space.delete' => ['{"space":5}', 'deleting space 5'],
        'space.warn' => ['{"space":5,"day":28}', 'space 5 is deleted in 2 days'],
    ];

    /** @return iterable<string, array{string}> */
    public static function snippets(): iterable
    {
        preg_match_all('/^```php\n(.*?)^```$/ms', file_get_contents(__DIR__ . '/../README.md'), $found);
        self::assertGreaterThan(7, count($found[1]));
        foreach ($found[1] as $i => $code) {
            if (!str_starts_with($code, '<?php')) {
                $isWhole = str_contains($code, 'new Client(');
                $code = "<?php\n" . ($isWhole ? '' : "\$client = new Delayq\\Client('127.0.0.1:9278');\n") . $code;
                $code = str_replace("<?php\n", "<?php\nrequire 'vendor/autoload.php';\n", $code);
            }
            yield "README $i" => [$code];
        }
        foreach (glob(__DIR__ . '/../examples/*.php') as $file) {
            yield basename($file) => [file_get_contents($file)];
        }
    }

    /** @dataProvider snippets */
    public function testSnippet(string $code): void
    {
        $server = new Server();
        $directory = "{$server->directory}/project";
        mkdir("$directory/vendor", 0o700, true);
        file_put_contents("$directory/vendor/autoload.php", '<?php require ' . var_export(dirname(__DIR__) . '/autoload.php', true) . ';');
        file_put_contents("$directory/snippet.php", strtr($code, ['127.0.0.1:9278' => "127.0.0.1:$server->port", "'port' => 9278" => "'port' => $server->port"]));
        preg_match_all("/->handle\('([^']+)'/", $code, $topics);
        foreach ($topics[1] as $topic) {
            $server->client()->enqueue($topic, '1', self::JOBS[$topic][0]);
        }
        $process = proc_open([PHP_BINARY, '-d', 'display_errors=stderr', 'snippet.php'], [['file', '/dev/null', 'r'], ['file', "$directory/out", 'w'], ['file', "$directory/err", 'w']], $pipes, $directory);
        $deadline = microtime(true) + 30;
        $isTold = false;
        while (($status = proc_get_status($process))['running']) {
            self::assertLessThan($deadline, microtime(true), file_get_contents("$directory/out") . file_get_contents("$directory/err"));
            $isDone = $topics[1] !== [] && array_filter($topics[1], static fn (string $topic) => $server->client()->get($topic, '1')->state !== 'done') === [];
            if ($isDone && !$isTold) {
                proc_terminate($process);
                $isTold = true;
            }
            usleep(20_000);
        }
        proc_close($process);
        self::assertSame('', file_get_contents("$directory/err"));
        self::assertSame(0, $status['exitcode']);
        $out = file_get_contents("$directory/out");
        foreach ($topics[1] as $topic) {
            self::assertStringContainsString(self::JOBS[$topic][1], $out);
        }
        if (preg_match_all('/echo .*; +\/\/ .*?(\w+)$/m', $code, $said) > 0) {
            foreach (array_intersect($said[1], ['cancelled', 'conflict']) as $word) {
                self::assertStringContainsString($word, $out);
            }
        }
    }
}
