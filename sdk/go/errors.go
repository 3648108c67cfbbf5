package delayq

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Error is what the server, or the connection to it, reports. Its code is one of those in the server's table of errors:
// "invalid", "too_large", "conflict", "not_found", "stale_lease", "overloaded", "disk_full", "unavailable", "stopping",
// "unauthorized", "forbidden", "corrupt" and "internal". A server that cannot be reached, or a connection that was lost before
// the answer came, is "unavailable".
//
// Use errors.Is with ErrConflict and the like, or errors.As to get the fields.
type Error struct {
	Code       string
	Message    string
	Retryable  bool          // whether the same call may succeed later
	RetryAfter time.Duration // when the server says that it may succeed; 0 if it does not say

	cause   error
	unknown bool // the command may have been executed: the connection was lost, or the engine was away
}

func (e *Error) Error() string {
	if e.Message == "" {
		return "delayq: " + e.Code
	}
	return "delayq: " + e.Code + ": " + e.Message
}

// Unwrap returns the error of the network, if there was one.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is an *Error with the same code.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}

// For errors.Is.
var (
	ErrInvalid      = &Error{Code: "invalid"}
	ErrTooLarge     = &Error{Code: "too_large"}
	ErrConflict     = &Error{Code: "conflict"}
	ErrNotFound     = &Error{Code: "not_found"}
	ErrOverloaded   = &Error{Code: "overloaded"}
	ErrDiskFull     = &Error{Code: "disk_full"}
	ErrUnavailable  = &Error{Code: "unavailable"}
	ErrUnauthorized = &Error{Code: "unauthorized"}
	ErrForbidden    = &Error{Code: "forbidden"}
	errStaleLease   = &Error{Code: "stale_lease"}
)

// ErrClosed is returned by the calls of a client after its Close.
var ErrClosed = errors.New("delayq: the client is closed")

// The first word of an error reply.
var codes = map[string]Error{
	"INVALID":     {Code: "invalid"},
	"TOOLARGE":    {Code: "too_large"},
	"CONFLICT":    {Code: "conflict"},
	"NOTFOUND":    {Code: "not_found"},
	"STALELEASE":  {Code: "stale_lease"},
	"OVERLOADED":  {Code: "overloaded", Retryable: true},
	"DISKFULL":    {Code: "disk_full", Retryable: true},
	"UNAVAILABLE": {Code: "unavailable", Retryable: true},
	"STOPPING":    {Code: "stopping", Retryable: true},
	"NOAUTH":      {Code: "unauthorized"},
	"NOPERM":      {Code: "forbidden"},
	"CORRUPT":     {Code: "corrupt"},
	"INTERNAL":    {Code: "internal"},
}

// parseError reads an error reply without the sign in front of it.
func parseError(line string) *Error {
	word, message, _ := strings.Cut(line, " ")
	known, ok := codes[word]
	if !ok {
		return &Error{Code: "internal", Message: line}
	}
	known.Message = message
	known.unknown = known.Code == "unavailable" // the engine may have done it
	known.RetryAfter = retryAfter(message)
	return &known
}

func retryAfter(message string) time.Duration {
	_, rest, found := strings.Cut(message, "(try again in ")
	if !found {
		return 0
	}
	text, _, found := strings.Cut(rest, ")")
	if !found {
		return 0
	}
	delay, err := parseDuration(text)
	if err != nil {
		return 0
	}
	return delay
}

func isUnknown(err error) bool {
	var known *Error
	return errors.As(err, &known) && known.unknown
}

func isRetryable(err error) bool {
	var known *Error
	return errors.As(err, &known) && known.Retryable
}

func invalid(format string, values ...any) *Error {
	return &Error{Code: "invalid", Message: fmt.Sprintf(format, values...)}
}

// lostError is a failure of the connection. If sent is true, the server may have executed the command.
func lostError(cause error, sent bool) *Error {
	message := "the server cannot be reached: " + cause.Error()
	if sent {
		message = "the connection was lost before the answer came, the command may have taken effect: " + cause.Error()
	}
	return &Error{Code: "unavailable", Message: message, Retryable: true, cause: cause, unknown: sent}
}

// A reply that the protocol does not allow here.
func unexpected(reply value) *Error {
	return &Error{Code: "internal", Message: fmt.Sprintf("unexpected reply of type %q", reply.kind)}
}

// retryIn and dead are what a handler returns to say what becomes of its job.
type retryIn struct {
	delay time.Duration
	cause error
}

// RetryIn, returned by a handler, says that the attempt failed and when the next one is due. The cause is optional and is
// stored with the job.
func RetryIn(delay time.Duration, cause ...error) error {
	for _, err := range cause {
		if err != nil {
			return &retryIn{delay, err}
		}
	}
	return &retryIn{delay, nil}
}

func (r *retryIn) Error() string {
	if r.cause == nil {
		return "retry in " + r.delay.String()
	}
	return r.cause.Error()
}

func (r *retryIn) Unwrap() error { return r.cause }

type dead struct{ reason string }

// Dead, returned by a handler, says that the job failed for good: there is no further attempt. The reason is stored with it.
func Dead(reason string) error { return &dead{reason} }

func (d *dead) Error() string { return d.reason }
