#include "api/http/dashboard.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "api/http/v1.h"

namespace delayq::embedded {

/// What web/build.mjs made of web/.
std::string_view dashboard_pack();

}  // namespace delayq::embedded

namespace delayq::http {

namespace {

constexpr std::string_view kPage = "index.html";

/// Only files of this server, no script or style within the page, and no other page around it.
constexpr std::string_view kPolicy =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
    "X-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Opener-Policy: same-origin\r\n";

/// Removes from `text`, and returns, what is before `separator`, which is removed, too.
std::string_view take(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view front = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return front;
}

const PageFile* find_file(std::string_view name) {
  static const auto kFiles = unpack(embedded::dashboard_pack());
  if (!kFiles.ok()) return nullptr;
  const auto found =
      std::find_if(kFiles->begin(), kFiles->end(), [&](const PageFile& each) { return each.name == name; });
  return found == kFiles->end() ? nullptr : &*found;
}

Status send_file(const Call& call, std::string_view name, std::string_view cache) {
  const PageFile* const file = find_file(name);
  if (file == nullptr) return Error{ErrorCode::kNotFound, {}, "the dashboard has no such file", {}};
  Response response;
  response.content_type = file->type;
  response.cache = cache;
  response.headers = fmt::format("ETag: \"{}\"\r\n{}", file->tag, kPolicy);
  if (call.request.if_none_match.find(file->tag) != std::string_view::npos) {
    response.status = 304;
  } else {
    response.body = file->gzipped;
    response.is_gzipped = true;
  }
  call.accept().send(std::move(response));
  return {};
}

/// A link to the page may have a query, which the page reads.
Status page(const Call& call) { return send_file(call, kPage, "no-cache"); }

Status page_file(const Call& call) {
  return send_file(call, call.names[0], "public, max-age=31536000, immutable");
}

Response refuse_page(const Error& error, int status) { return v1().refusal(error, status); }

/// "/" has no parts, so its pattern is empty.
constexpr std::array kPageRoutes{
    Dialect::Route{"GET", "", &page, 0, api::Reach::kNone, api::AnswerKind::kNames}};
constexpr std::array kFileRoutes{
    Dialect::Route{"GET", "/ui/{name}", &page_file, 0, api::Reach::kNone, api::AnswerKind::kNames}};

}  // namespace

std::span<const Dialect* const> dashboard() {
  static constexpr Dialect kPages{"/", kPageRoutes, &refuse_page, true};
  static constexpr Dialect kFiles{"/ui", kFileRoutes, &refuse_page, true};
  static constexpr std::array<const Dialect*, 2> kBoth{&kPages, &kFiles};
  return kBoth;
}

Result<std::vector<PageFile>> unpack(std::string_view pack) {
  std::vector<PageFile> files;
  std::vector<size_t> sizes;
  while (!pack.empty()) {
    std::string_view line = take(pack, '\n');
    if (line.empty()) break;
    PageFile file;
    file.name = take(line, ' ');
    const std::string_view digits = take(line, ' ');
    size_t size = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    if (digits.empty() || read.ptr != digits.data() + digits.size())
      return invalid("the dashboard: a line has no size");
    file.tag = take(line, ' ');
    file.type = line;
    files.push_back(file);
    sizes.push_back(size);
  }
  for (size_t i = 0; i < files.size(); ++i) {
    if (sizes[i] > pack.size()) return invalid("the dashboard: it ends too early");
    files[i].gzipped = pack.substr(0, sizes[i]);
    pack.remove_prefix(sizes[i]);
  }
  return files;
}

}  // namespace delayq::http
