#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <forward_list>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/functional/function_ref.h>

#include "api/conversation.h"
#include "api/resp/command_table.h"
#include "core/result.h"
#include "queue/job_headers.h"
#include "queue/queue.h"
#include "resp/command_parser.h"
#include "resp/writer.h"

namespace delayq::resp {

/// The commands between MULTI and EXEC, kept until they run. Bounded in number and in bytes.
class Transaction {
 public:
  static constexpr size_t kMostCommands = 10'000;

  explicit Transaction(size_t most_bytes) : most_bytes_(most_bytes) {}

  /// kTooLarge when there is no room for it.
  Status add(std::span<const std::string_view> words);
  /// A command was refused, so none of them may run: forgets them.
  void abort();
  bool is_aborted() const { return is_aborted_; }

  size_t size() const { return commands_.size(); }
  /// The memory that it holds.
  size_t footprint() const {
    return text_.capacity() + words_.capacity() * sizeof(Word) + commands_.capacity() * sizeof(Command);
  }
  bool is_begun() const { return is_begun_; }
  void begin() { is_begun_ = true; }
  bool is_done() const { return next_ == commands_.size(); }
  /// The words of the next command to run. The span is valid until the next call, the words as long as this
  /// object. REQUIRES: no more is added, and it is not done.
  std::span<const std::string_view> take();

 private:
  struct Command {
    size_t first_word = 0;
    size_t words = 0;
  };
  struct Word {
    size_t begin = 0;  ///< in text_
    size_t size = 0;
  };

  size_t most_bytes_;
  std::string text_;
  std::vector<Word> words_;
  std::vector<Command> commands_;
  std::vector<std::string_view> taken_;
  size_t next_ = 0;
  bool is_begun_ = false;
  bool is_aborted_ = false;
};

class Conversation;

/// The connections that get news of single jobs.
class NewsFeeds {
 public:
  static constexpr size_t kMostFeeds = 100;
  static constexpr Millis kInterval{100};

  bool is_full() const { return feeds_.size() >= kMostFeeds; }
  size_t size() const { return feeds_.size(); }
  void add(const std::shared_ptr<Conversation>& conversation);
  /// Sends what there is. Returns when to call it again; kNever when nobody listens.
  Moment tick(Moment now);

 private:
  std::vector<std::weak_ptr<Conversation>> feeds_;
  Moment next_{};
};

/// What all RESP conversations of a server share.
struct Endpoint {
  Queue& queue;
  std::function<Moment()> clock;
  std::string version;  ///< of delayq
  Moment started{};
  std::function<size_t()> connections;
  uint64_t last_id = 0;  ///< of a connection
  std::shared_ptr<api::Front> front = std::make_shared<api::Front>();
  NewsFeeds feeds{};
};

/// One client: its commands become queue verbs, and the answers become replies in the order of the commands.
///
/// Consecutive commands of one kind go to the queue as one batch, and the next command does not wait for the
/// answer. Only a POP that waits, and a command that needs several steps, hold up later commands, on this
/// connection alone.
class Conversation final : public api::Conversation {
 public:
  Conversation(Endpoint& host, net::Connection& connection, CommandLimits limits = {});

  size_t read(std::string_view input) override;
  size_t needed() const override { return needed_; }
  size_t kept() const override { return transaction_ ? transaction_->footprint() : 0; }
  size_t footprint() const override { return api::Conversation::footprint() + kept(); }
  uint64_t requests() const override { return requests_; }
  void time_out() override;
  bool go_on() override;
  ProtocolKind protocol() const override { return ProtocolKind::kResp; }
  void hang_up() override;

  /// Sends news as push messages, if the client reads them fast enough. False: it gets none any more.
  bool send_news();

 private:
  /// A finished reply: appends to the writer.
  using Words = absl::FunctionRef<void(Writer&)>;
  /// The same for several replies, each with its number.
  using EachWords = absl::FunctionRef<void(Writer&, size_t)>;

  std::shared_ptr<Conversation> self() { return std::static_pointer_cast<Conversation>(shared_from_this()); }

  // ---- the flow (conversation.cc)
  void execute(std::span<const std::string_view> words);
  Status execute(const CommandSpec* spec, std::span<const std::string_view> words);
  /// Counts the command, and checks whether the caller may send it.
  Status admit(const CommandSpec& spec, const Arguments& arguments);
  /// The same without counting it.
  Status check_access(const CommandSpec& spec, const Arguments& arguments) const;
  /// Whether tokens are needed and the client has not given one.
  bool is_stranger() const { return !front_.access.is_open() && !caller_.is_known(); }
  void refuse_bytes(std::string_view why);
  void refuse_stranger();
  void refuse_http();
  Served about_command(const CommandSpec& spec, std::span<const std::string_view> words) const;
  /// What the access log gets about a command when its reply is known.
  struct Asked {
    std::string_view verb;
    std::string peer, target, token;
    uint64_t bytes_in = 0;
    std::chrono::nanoseconds begun{};
    bool may_wait = false;
  };
  void note_asked(const CommandSpec* spec, std::span<const std::string_view> words);
  void tell(const Asked& asked, std::string_view reply) const;
  Status dispatch(Verb verb, Arguments& arguments);
  /// A place for the replies to the oldest `commands` that have none yet.
  ReplyPlace reserve(size_t commands = 1, size_t most_bytes = 0);
  /// The version that HELLO chooses is for later replies: those that wait are written in the version of their
  /// command.
  void set_version(Version version);
  Version version_of(ReplyPlace place) const;
  /// Appends replies `first` to `first + count` of a place, counts the errors and logs the commands.
  void write_replies(std::string& out, ReplyPlace place, size_t first, size_t count, EachWords write);
  void answer_each(ReplyPlace place, size_t count, EachWords write);
  void answer(ReplyPlace place, Words words);
  /// A reply that is known at once.
  void reply(Words words);
  void refuse(const Error& error);
  /// A Reply<T> that writes `words(writer, value)`, or the error.
  template <class T, class Write>
  Reply<T> respond(Write write) {
    return [self = self(), place = reserve(1, most_bytes(answer_kind_)), write](Result<T> result) {
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

  // ---- MULTI, EXEC, DISCARD (transaction.cc)
  Status begin_transaction();
  Status discard_transaction();
  bool is_kept_for_exec(const CommandSpec* spec) const;
  Status keep_for_exec(const CommandSpec& spec, std::span<const std::string_view> words);
  /// Runs the commands of EXEC as far as there is room for their replies. Returns true if all were run.
  bool run_transaction(const CommandSpec& exec, std::span<const std::string_view> words);

  // ---- batches (batches.cc): consecutive commands of one kind
  enum class BatchKind : uint8_t {
    kNone,
    kPush,
    kPop,
    kAck,
    kNack,
    kExtend,
    kCancel,
    kReschedule,
    kSetSchedule
  };
  void begin_batch(BatchKind kind);
  /// False: the batch must be given to the queue before this command can be, because it may need several
  /// steps.
  bool continues_batch(std::span<const std::string_view> words) const;
  void flush();
  /// A place for the replies to this many commands, all with short replies.
  ReplyPlace reserve_for(size_t commands);
  void flush_pushes();
  void flush_pops();
  void flush_acks();
  void flush_nacks();
  void flush_extends();
  void flush_cancels();
  void flush_reschedules();
  void flush_schedules();

  /// The place of the reply that is sent next.
  ReplyPlace next_sent() const { return replies_.next_place() - replies_.waiting(); }
  struct Special;
  /// What is special about later replies, without what is sent already.
  Special& special();
  /// Whether the reply that is sent next is one within the array of an EXEC: nothing else may come there.
  bool is_amid_exec();

  // ---- the verbs that are batched: each adds to its batch
  Status push(Arguments& arguments);
  Status read_push(Arguments& arguments, PushRequest& job);
  Status push_options(Arguments& arguments, PushRequest& job);
  /// Notes that the newest item of the batch, which has `items`, wants FIELDS.
  void want_fields(size_t items);
  /// The options of PUSH that say how the job is handled, whenever it is due. Takes one if it is there.
  Status job_options(Arguments& arguments, PushRequest& job);
  /// Moves the HEADERs and CALLBACKHEADERs that job_options() took to the options, encoded. Kept until the
  /// batch is flushed.
  void take_headers(JobOptions& options);
  Status ack(Arguments& arguments);
  Status nack(Arguments& arguments);
  Status release(Arguments& arguments);
  Status extend(Arguments& arguments);
  Status cancel(Arguments& arguments);
  Status reschedule(Arguments& arguments);

  // ---- recurring jobs (schedules.cc)
  Status schedule(Verb verb, Arguments& arguments);
  /// Adds to its batch.
  Status set_schedule(Arguments& arguments);
  /// Whether a command sets a schedule that the batch does not set.
  bool sets_another_schedule(std::span<const std::string_view> words) const;
  Status list_schedules(Arguments& arguments);
  Status next_of_schedule(Arguments& arguments);
  Status next_of_rule(Arguments& arguments);

  // ---- the others (consuming.cc, looking.cc, transferring.cc, greeting.cc)
  Status pop(Arguments& arguments);
  struct Pops;
  /// How a job is written in the reply to POP.
  enum class PopForm : uint8_t { kPlain, kWithHeaders, kFields };
  static Status read_pop_options(Arguments& arguments, PopRequest& request, PopForm& form);
  static void write_jobs(Writer& writer, std::span<const TakenJob> jobs, PopForm form);
  void ask(const PopRequest& request, PopForm form);
  void ask_together(const std::shared_ptr<Pops>& pops);
  void popped_together(const std::shared_ptr<Pops>& pops, const Result<PopAnswer>& popped);
  Status get(Arguments& arguments);
  Status news(Arguments& arguments);
  Status forecast(Arguments& arguments);
  Status consumers(Arguments& arguments);
  Status list(Arguments& arguments);
  Status forget(Arguments& arguments);
  Status topics(Arguments& arguments);
  Status stats(Arguments& arguments);
  Status redrive(Arguments& arguments);
  Status purge(Arguments& arguments);
  Status unset(Arguments& arguments);
  Status settings(Verb verb, Arguments& arguments);
  Status cancel_group(Arguments& arguments);
  Status export_page(Arguments& arguments);
  Status import_lines(Arguments& arguments);
  Status backup(Arguments& arguments);
  Status greet(Verb verb, Arguments& arguments);
  Status hello(Arguments& arguments);
  /// `secret` is a token's; `name` is the token's name, empty, or "default".
  Status authenticate(std::string_view name, std::string_view secret);
  Status command(Arguments& arguments);
  Status client(Arguments& arguments);
  Status select(Arguments& arguments);
  void info();
  void about_server();

  Endpoint& host_;
  CommandLimits limits_;
  CommandParser parser_;
  std::optional<Transaction> transaction_;
  std::shared_ptr<NewsListener> news_;  ///< null: it gets none
  Version version_ = Version::k2;
  /// The version of the replies before a place.
  struct Older {
    ReplyPlace before = 0;
    Version version = Version::k2;
  };
  /// The places of the replies to an EXEC: its array, and what is in it.
  struct Nested {
    ReplyPlace begin = 0;
    ReplyPlace end = std::numeric_limits<ReplyPlace>::max();
  };
  /// What is special about replies that are not sent yet, in the order of the places.
  struct Special {
    std::deque<Older> older{};
    std::deque<Nested> nested{};
  };
  /// Null for most connections: an empty deque takes half a kilobyte.
  std::unique_ptr<Special> special_;
  uint64_t id_;
  std::string name_;
  Moment now_{};
  size_t needed_ = 1;
  uint64_t requests_ = 0;     ///< that have arrived completely
  std::vector<Asked> noted_;  ///< commands without a place yet; empty when commands are not logged
  absl::flat_hash_map<ReplyPlace, std::vector<Asked>> asked_;  ///< not answered yet; the same

  api::AnswerKind answer_kind_ = api::AnswerKind::kShort;  ///< of the command that is being executed

  BatchKind batch_ = BatchKind::kNone;
  std::vector<PushRequest> pushes_;
  std::vector<size_t> with_fields_;          ///< of the pushes or nacks in the batch: those that want FIELDS
  std::vector<JobHeader> headers_;           ///< of the command that is being read
  std::string callback_headers_;             ///< the same, as lines
  std::forward_list<std::string> texts_;     ///< made for the batch
  std::vector<std::string_view> pop_words_;  ///< of the pops in the batch, which are all the same
  std::vector<std::string_view> pop_topics_;
  PopRequest pop_;
  uint32_t pop_count_ = 0;  ///< how many pops
  PopForm pop_form_ = PopForm::kPlain;
  std::vector<std::shared_ptr<Pops>> paused_pops_;  ///< until the client has read what it got so far
  std::vector<AckItem> acks_;
  std::vector<uint32_t> acks_per_command_;
  std::vector<NackItem> nacks_;
  std::vector<ExtendItem> extends_;
  std::vector<JobRef> cancels_;
  std::vector<RescheduleItem> reschedules_;
  std::vector<ScheduleSpec> schedules_;  ///< each has another name
};

// Members of a map.
inline void field(Writer& writer, std::string_view name, uint64_t value) {
  writer.bulk(name);
  writer.integer(static_cast<int64_t>(value));
}
inline void field(Writer& writer, std::string_view name, std::string_view value) {
  writer.bulk(name);
  writer.bulk(value);
}
inline void field(Writer& writer, std::string_view name, Moment moment) {
  writer.bulk(name);
  writer.integer(to_unix_ms(moment));
}

/// A job's headers as consumers see them, as a map.
void write_headers(Writer& writer, std::string_view encoded);
/// The member that has the names of the headers of its own callback; their values are never shown.
void write_callback_header_names(Writer& writer, std::string_view lines);

}  // namespace delayq::resp
