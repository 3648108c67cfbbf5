#pragma once

#include <cassert>
#include <optional>
#include <utility>
#include <variant>

#include "core/error.h"

namespace delayq {

/// A value, or the reason why there is none. Accessing the one that is absent is a programmer error.
template <class T>
class [[nodiscard]] Result {
 public:
  // Implicit, so that a function can return either.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(T value) : content_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : content_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return content_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return assert(ok()), *std::get_if<0>(&content_); }
  const T& value() const& { return assert(ok()), *std::get_if<0>(&content_); }
  T&& value() && { return assert(ok()), std::move(*std::get_if<0>(&content_)); }
  const Error& error() const { return assert(!ok()), *std::get_if<1>(&content_); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Error> content_;
};

/// Done, or the reason why not.
template <>
class [[nodiscard]] Result<void> {
 public:
  // Not defaulted: `Status{}` would then clear all the room of an Error first, in each check of each job.
  Result() noexcept {}  // NOLINT(modernize-use-equals-default)
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return assert(!ok()), *error_; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace delayq
