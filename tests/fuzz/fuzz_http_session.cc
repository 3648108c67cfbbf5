// A client that sends anything, in any pieces, to the whole HTTP layer over the memory engine, the APIs of
// other delay queues included. It must get well-formed responses, and the queue must stay usable for others.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "api/compat/compat.h"
#include "api/http/conversation.h"
#include "json/reader.h"
#include "tests/support/memory_queue.h"

namespace delayq::http {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

class Wire final : public net::Connection {
 public:
  void on_output() override {}
  void on_resume() override {}
};

struct World : MemoryQueue {
  World() { host.dialects = {&compat::go_delay_queue(), &compat::callback(), &compat::delayq()}; }

  Endpoint host{queue, [this] { return now; }, "0"};
};

/// Whatever was sent back must be responses with JSON in them, as long as they say, and none of them ours to
/// blame. Behind the head of a stream of events nothing else comes.
void read_responses(std::string& output, bool& is_stream) {
  std::string_view rest = output;
  while (!rest.empty() && !is_stream) {
    require(rest.starts_with("HTTP/1.1 "));
    const size_t end = rest.find("\r\n\r\n");
    require(end != std::string_view::npos);
    const std::string_view head = rest.substr(0, end);
    rest.remove_prefix(end + 4);
    if (head.starts_with("HTTP/1.1 100 ")) continue;
    require(!head.starts_with("HTTP/1.1 5"));
    is_stream = head.find("\r\nContent-Type: text/event-stream") != std::string_view::npos &&
                head.find("\r\nContent-Length: ") == std::string_view::npos;
    if (is_stream) break;
    const size_t length = head.find("Content-Length: ");
    require(length != std::string_view::npos);
    const size_t size = std::stoul(std::string(head.substr(length + 16)));
    require(size <= rest.size());
    require(json::parse(rest.substr(0, size)).ok());
    rest.remove_prefix(size);
  }
  output.clear();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  World world;
  Wire wire;
  net::HttpLimits limits;
  limits.header_bytes = 4096;
  limits.body_bytes = 64 << 10;
  const auto conversation = std::make_shared<Conversation>(world.host, wire, limits);
  std::string input;
  bool is_stream = false;
  // The first byte says in how large pieces the rest comes.
  const size_t piece = size == 0 ? 1 : size_t{data[0]} + 1;
  for (size_t i = 1; i < size && !conversation->is_over(); i += piece) {
    input.append(reinterpret_cast<const char*>(data) + i, std::min(piece, size - i));
    if (conversation->wants_input()) input.erase(0, conversation->read(input));
    world.now += Millis{data[i]};
    world.settle();
    read_responses(conversation->output(), is_stream);
  }
  conversation->hang_up();
  world.settle();
  return 0;
}

}  // namespace delayq::http
