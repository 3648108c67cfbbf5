#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <absl/functional/any_invocable.h>

#include "core/result.h"
#include "core/time.h"
#include "kafka/client_options.h"

namespace delayq::kafka {

struct ReaderOptions {
  ClientOptions client;
  Millis timeout = std::chrono::seconds{10};  ///< after it a read fails
  /// Called from other threads when poll() has something to report. It must not call the reader.
  std::function<void()> wakeup{};
};

/// Reads single records at their offsets. It is in no consumer group and commits nothing.
///
/// For one thread. Answers come only from poll(). Those that are outstanding when the reader is destroyed are
/// never called.
class Reader {
 public:
  /// The value of the record; nullopt: there is none at this offset (any more). kUnavailable: the brokers did
  /// not answer in time.
  using Answer = absl::AnyInvocable<void(Result<std::optional<std::string>>)>;

  virtual ~Reader() = default;

  virtual void read(Moment now, std::string_view topic, int32_t partition, int64_t offset, Answer answer) = 0;
  /// Calls the answers that are there. Returns whether there were any.
  virtual bool poll(Moment now) = 0;
  virtual size_t outstanding() const = 0;
};

/// A reader over librdkafka. Fails only for options that check_options() refuses.
Result<std::unique_ptr<Reader>> open_reader(ReaderOptions options);

}  // namespace delayq::kafka
