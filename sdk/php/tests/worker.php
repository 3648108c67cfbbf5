<?php

declare(strict_types=1);

// A worker for the tests that kill: worker.php PORT FILE CONCURRENCY LEASE MILLISECONDS. Writes to FILE what its
// handlers do.

use Delayq\Client;
use Delayq\Job;
use Delayq\LogFiles;
use Delayq\Worker;

require __DIR__ . '/bootstrap.php';

[, $port, $file, $concurrency, $lease, $ms] = $argv;
$note = static function (string $what, Job $job) use ($file): void {
    file_put_contents($file, sprintf("%s %s %d %d %d\n", $what, $job->id, $job->attempt, getmypid(), hrtime(true)), FILE_APPEND);
};
$worker = new Worker(new Client("127.0.0.1:$port"), concurrency: (int) $concurrency, lease: (float) $lease, wait: 2, logger: new LogFiles(dirname($file) . '/logs'));
$worker->handle('t', static function (Job $job) use ($note, $ms): void {
    $note('start', $job);
    $reason = $job->stopReason((int) $ms / 1000);
    $note($reason ?? 'end', $job);
});
$worker->run();
