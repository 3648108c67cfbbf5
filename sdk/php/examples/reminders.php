<?php

declare(strict_types=1);

// Three warnings and a deletion on day 30, cancelled together when the user comes back.
// php reminders.php [host:port]

use Delayq\Client;

require is_file('vendor/autoload.php') ? 'vendor/autoload.php' : __DIR__ . '/../autoload.php';

$client = new Client($argv[1] ?? '127.0.0.1:9278');
$expired = new DateTimeImmutable();

$jobs = [['topic' => 'space.delete', 'id' => 'space:1', 'payload' => ['space' => 1], 'processAt' => $expired->modify('+30 days'), 'group' => 'space:1']];
foreach ([23, 28, 29] as $day) {
    $jobs[] = ['topic' => 'space.warn', 'id' => "space:1:$day", 'payload' => ['space' => 1, 'day' => $day], 'processAt' => $expired->modify("+$day days"), 'group' => 'space:1'];
}
foreach ($client->enqueueMany($jobs) as $result) {
    echo is_string($result) ? "stored $result\n" : "not stored: {$result->getMessage()}\n";
}

echo $client->cancelGroup('space:1'), " jobs cancelled\n";
