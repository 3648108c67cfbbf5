#include "net/redis/request.h"

#include "resp/writer.h"

namespace delayq::net::redis {

Request make_command(std::span<const std::string_view> words, Answer answer) {
  Request request;
  request.words = words.size();
  resp::Writer writer(request.body, resp::Version::k2);
  for (const std::string_view word : words) writer.bulk(word);
  request.answer = std::move(answer);
  return request;
}

Request make_internal(std::initializer_list<std::string_view> words, Answer answer) {
  Request request = make_command({words.begin(), words.size()}, std::move(answer));
  request.is_internal = true;
  return request;
}

Request make_run(const KnownScript& script, std::span<const std::string_view> keys,
                 std::span<const std::string_view> arguments, Answer answer) {
  Request request;
  request.words = 3 + keys.size() + arguments.size();
  request.script = &script;
  size_t size = 0;
  for (const std::string_view key : keys) size += key.size() + 16;
  for (const std::string_view argument : arguments) size += argument.size() + 16;
  request.body.reserve(size);
  resp::Writer writer(request.body, resp::Version::k2);
  writer.bulk(std::to_string(keys.size()));
  for (const std::string_view key : keys) writer.bulk(key);
  for (const std::string_view argument : arguments) writer.bulk(argument);
  request.answer = std::move(answer);
  return request;
}

void append(std::string& out, const Request& request, bool with_source) {
  resp::Writer writer(out, resp::Version::k2);
  writer.array(request.words);
  if (request.script != nullptr) {
    writer.bulk(with_source ? "EVAL" : "EVALSHA");
    writer.bulk(with_source ? request.script->source : request.script->sha1);
  }
  out += request.body;
}

}  // namespace delayq::net::redis
