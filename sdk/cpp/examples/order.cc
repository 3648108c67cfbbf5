// Closes orders that are not paid in time, and leaves those alone that are.
//   ./order                    over the network: a server on 127.0.0.1
//   ./order DIRECTORY          the same in process: the jobs are in this directory
#include <chrono>
#include <cstdio>

#include <delayq/delayq.h>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  delayq::Client client = argc > 1 ? delayq::Client::open(argv[1]) : delayq::Client();
  client.enqueue("order", "order:1", "1", delayq::process_in(300ms));
  client.enqueue("order", "order:2", "2", delayq::process_in(30min));
  client.dequeue("order", "order:2");  // it was paid

  delayq::Worker worker(client);
  worker.handle("order", [&](const delayq::Job& job) {
    std::printf("close %s\n", job.id().c_str());
    worker.stop();  // a real worker goes on
  });
  worker.run();
}
