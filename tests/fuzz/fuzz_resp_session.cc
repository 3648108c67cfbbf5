// A client that sends anything, in any pieces, to the whole command layer over the memory engine. It must get
// well-formed replies, as many as it sent commands, and the queue must stay usable for others.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "api/resp/conversation.h"
#include "resp/value.h"
#include "tests/support/memory_queue.h"

namespace delayq::resp {
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
  Endpoint host{queue, [this] { return now; }, "0", now, {}, 0};
};

/// Whatever was sent back must be replies.
void read_replies(std::string& output) {
  std::string_view rest = output;
  while (!rest.empty()) {
    const auto reply = take_reply(rest);
    require(reply.ok() && reply->has_value());
  }
  output.clear();
}

void still_works(World& world) {
  Wire wire;
  const auto other = std::make_shared<Conversation>(world.host, wire);
  std::string ping;
  append_command(ping, {"PING"});
  require(other->read(ping) == ping.size());
  world.settle();
  require(other->output() == "+PONG\r\n");
  other->hang_up();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  World world;
  Wire wire;
  CommandLimits limits;
  limits.argument_bytes = 64 << 10;
  const auto conversation = std::make_shared<Conversation>(world.host, wire, limits);
  std::string input;
  // The first byte says in how large pieces the rest comes.
  const size_t piece = size == 0 ? 1 : size_t{data[0]} + 1;
  for (size_t i = 1; i < size && !conversation->is_over(); i += piece) {
    input.append(reinterpret_cast<const char*>(data) + i, std::min(piece, size - i));
    if (conversation->wants_input()) input.erase(0, conversation->read(input));
    world.now += Millis{data[i]};
    world.settle();
    read_replies(conversation->output());
  }
  conversation->hang_up();
  world.settle();
  still_works(world);
  return 0;
}

}  // namespace delayq::resp
