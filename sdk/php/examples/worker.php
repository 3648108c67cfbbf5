<?php

declare(strict_types=1);

// A worker whose jobs are classes, with DelayQ's log files in logs/.
// php worker.php [host:port]

use Delayq\Client;
use Delayq\Handler;
use Delayq\Job;
use Delayq\LogFiles;
use Delayq\Worker;

require is_file('vendor/autoload.php') ? 'vendor/autoload.php' : __DIR__ . '/../autoload.php';

final class DeleteSpace implements Handler
{
    public function perform(Job $job): void
    {
        echo "deleting space {$job->json()['space']}\n";
    }
}

final class WarnOwner implements Handler
{
    public function perform(Job $job): void
    {
        ['space' => $space, 'day' => $day] = $job->json();
        $left = 30 - $day;
        echo "space $space is deleted in $left days\n";
    }
}

(new Worker(new Client($argv[1] ?? '127.0.0.1:9278'), concurrency: 2, logger: new LogFiles('logs')))
    ->handle('space.delete', DeleteSpace::class)
    ->handle('space.warn', WarnOwner::class)
    ->run();
