<?php

declare(strict_types=1);

// A proxy that cuts connections: proxy.php TARGET_PORT PER_MILLE SEED. Prints its port. Of the portions that it
// carries, so many in a thousand are the last of their connection, and only a part of them arrives.

[, $target, $perMille, $seed] = $argv;
mt_srand((int) $seed);
$listener = stream_socket_server('tcp://127.0.0.1:0');
echo substr(strrchr(stream_socket_get_name($listener, false), ':'), 1), "\n";

$peers = [];  // id => the other end
$streams = [];
$cut = 0;
while (true) {
    $read = [...$streams, $listener, STDIN];
    $write = $except = null;
    stream_select($read, $write, $except, null);
    foreach ($read as $stream) {
        if ($stream === STDIN) {  // whoever started this is gone, or has had enough
            fwrite(STDERR, (string) $cut);
            exit(0);
        }
        if ($stream === $listener) {
            $client = stream_socket_accept($listener);
            $server = @stream_socket_client("tcp://127.0.0.1:$target", $number, $text, 5);
            if ($server === false) {
                fclose($client);
                continue;
            }
            foreach ([[$client, $server], [$server, $client]] as [$one, $other]) {
                stream_set_blocking($one, false);
                stream_set_read_buffer($one, 0);
                $streams[(int) $one] = $one;
                $peers[(int) $one] = $other;
            }
            continue;
        }
        if (!isset($peers[(int) $stream])) {
            continue;
        }
        $peer = $peers[(int) $stream];
        $bytes = @fread($stream, 65_536);
        $isLast = $bytes === '' || $bytes === false;
        if (!$isLast && mt_rand(0, 999) < $perMille) {
            $bytes = substr($bytes, 0, mt_rand(0, strlen($bytes)));
            $isLast = true;
            ++$cut;
        }
        while (!$isLast && $bytes !== '' && ($written = @fwrite($peer, $bytes)) !== false) {
            $bytes = substr($bytes, $written);
            if ($bytes !== '') {
                usleep(500);
            }
        }
        if ($isLast) {
            @fwrite($peer, (string) $bytes);
            foreach ([$stream, $peer] as $end) {
                unset($streams[(int) $end], $peers[(int) $end]);
                fclose($end);
            }
        }
    }
}
