#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/functional/function_ref.h>

#include "api/conversation.h"
#include "api/resp/arguments.h"
#include "api/resp/command_table.h"
#include "queue/queue.h"
#include "resp/command_parser.h"
#include "resp/writer.h"

namespace delayq::resp {

/// What all conversations of a server share.
struct Host {
  Queue& queue;
  std::function<Moment()> clock;
  std::string version;  ///< of delayq
  Moment started{};
  std::function<size_t()> connections;
  uint64_t last_id = 0;  ///< of a connection
  std::shared_ptr<api::Front> front = std::make_shared<api::Front>();
};

/// One client: its commands become queue verbs, and the answers its replies, in the order of the commands.
///
/// Commands of one kind that came together go to the queue as one batch, and nothing waits for an answer
/// before the next is taken. Only a POP that waits, and a command that needs several steps, hold up what
/// comes behind them, on this connection alone.
class Conversation final : public api::Conversation {
 public:
  Conversation(Host& host, net::Connection& connection, CommandLimits limits = {});

  size_t read(std::string_view input) override;
  size_t needed() const override { return needed_; }
  uint64_t requests() const override { return requests_; }
  void time_out() override;

 private:
  /// A finished reply: appends to the writer.
  using Words = absl::FunctionRef<void(Writer&)>;

  std::shared_ptr<Conversation> self() { return std::static_pointer_cast<Conversation>(shared_from_this()); }

  // ---- the flow (conversation.cc)
  void execute(std::span<const std::string_view> words);
  /// Whether this caller may say this.
  Status admit(const CommandSpec& spec, const Arguments& arguments);
  Served about_command(const CommandSpec& spec, std::span<const std::string_view> words) const;
  /// What the access log is told of a command when its reply is there.
  struct Asked {
    std::string_view verb;
    std::string peer, target, token;
    uint64_t bytes_in = 0;
    std::chrono::nanoseconds begun{};
    bool may_wait = false;
  };
  void note_asked(Place place, const CommandSpec& spec, std::span<const std::string_view> words);
  void tell(const Asked& asked, std::string_view reply) const;
  Status dispatch(Verb verb, Arguments& arguments);
  void answer(Place place, Words words);
  /// A reply that is known at once.
  void reply(Words words);
  void refuse(const Error& error);
  /// A Reply<T> that writes `words(writer, value)`, or the error.
  template <class T, class Write>
  Reply<T> respond(Write write) {
    return [self = self(), place = replies_.reserve(), write](Result<T> result) {
      self->answer(place, [&](Writer& writer) {
        if (!result.ok()) return write_error(writer, result.error());
        if constexpr (std::is_void_v<T>) {
          write(writer);
        } else {
          write(writer, *result);
        }
      });
    };
  }
  static void write_error(Writer& writer, const Error& error);
  static void write_acked(Writer& writer, std::span<const Status> results);
  static void write_rescheduled(Writer& writer, RescheduleOutcome outcome);

  // ---- batches (batches.cc): consecutive commands of one kind
  enum class Batch : uint8_t { kNone, kPush, kPop, kAck, kNack, kExtend, kCancel, kReschedule };
  void begin_batch(Batch kind);
  /// False: the batch must be given to the queue before this command can be, because it may need several
  /// steps.
  bool continues_batch(std::span<const std::string_view> words) const;
  void flush();
  void flush_pushes();
  void flush_pops();
  void flush_acks();
  void flush_nacks();
  void flush_extends();
  void flush_cancels();
  void flush_reschedules();

  // ---- the verbs that are batched: each adds to its batch
  Status push(Arguments& arguments);
  Status push_options(Arguments& arguments, PushRequest& job);
  Status ack(Arguments& arguments);
  Status nack(Arguments& arguments);
  Status extend(Arguments& arguments);
  Status cancel(Arguments& arguments);
  Status reschedule(Arguments& arguments);

  // ---- the others (consuming.cc, looking.cc, transferring.cc, greeting.cc)
  Status pop(Arguments& arguments);
  struct Pops;
  void ask(const PopRequest& request);
  void ask_together(const std::shared_ptr<Pops>& pops);
  void popped_together(const std::shared_ptr<Pops>& pops, const Result<PopAnswer>& popped);
  Status get(Arguments& arguments);
  Status list(Arguments& arguments);
  Status topics(Arguments& arguments);
  Status stats(Arguments& arguments);
  Status redrive(Arguments& arguments);
  Status purge(Arguments& arguments);
  Status export_page(Arguments& arguments);
  Status import_lines(Arguments& arguments);
  Status backup(Arguments& arguments);
  Status greet(Verb verb, Arguments& arguments);
  Status hello(Arguments& arguments);
  /// Who the client says it is, by the last of one or two words: a token's secret.
  Status authenticate(std::string_view secret);
  Status command(Arguments& arguments);
  Status client(Arguments& arguments);
  Status select(Arguments& arguments);
  void info();

  Host& host_;
  CommandParser parser_;
  Version version_ = Version::k2;
  uint64_t id_;
  std::string name_;
  Moment now_{};
  size_t needed_ = 1;
  uint64_t requests_ = 0;                    ///< that have come whole
  Place next_place_ = 0;                     ///< of the next command's reply: each has one, in their order
  absl::flat_hash_map<Place, Asked> asked_;  ///< not answered yet; empty when nobody wants to know

  Batch batch_ = Batch::kNone;
  std::vector<PushRequest> pushes_;
  std::vector<std::string_view> pop_words_;  ///< of the pops in the batch, which are all the same
  std::vector<std::string_view> pop_topics_;
  PopRequest pop_;
  uint32_t pop_count_ = 0;  ///< how many pops
  std::vector<AckItem> acks_;
  std::vector<uint32_t> acks_per_command_;
  std::vector<NackItem> nacks_;
  std::vector<ExtendItem> extends_;
  std::vector<JobRef> cancels_;
  std::vector<RescheduleItem> reschedules_;
};

}  // namespace delayq::resp
