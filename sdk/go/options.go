package delayq

import (
	"crypto/rand"
	"encoding/hex"
	"sort"
	"strings"
	"sync"
	"time"
)

// Option is an option of Enqueue.
type Option interface{ applyJob(*jobSpec) }

// ScheduleOption is an option of Every and Cron.
type ScheduleOption interface{ applySchedule(*scheduleSpec) }

// TimeOption says when a job is due: ProcessIn or ProcessAt.
type TimeOption func(*jobSpec)

func (o TimeOption) applyJob(spec *jobSpec) { o(spec) }

// JobOption is an option of Enqueue that the jobs of a schedule can have, too.
type JobOption func(*jobFields)

func (o JobOption) applyJob(spec *jobSpec)           { o(&spec.jobFields) }
func (o JobOption) applySchedule(spec *scheduleSpec) { o(&spec.jobFields) }

// jobFields are what the jobs of producers and of schedules have in common.
type jobFields struct {
	priority, retry *int64
	timeout         *time.Duration
	backoff         string
	group           string
	callback        string
	headers         map[string]string
}

// ProcessIn makes a job due after this time.
func ProcessIn(delay time.Duration) TimeOption {
	return func(s *jobSpec) { s.in, s.hasIn = delay, true }
}

// ProcessAt makes a job due at this moment. A moment in the past means at once.
func ProcessAt(at time.Time) TimeOption {
	return func(s *jobSpec) { s.at, s.hasAt = at, true }
}

// Timeout is the lease of the job: for how long a worker that dies holds it before it is handed over again. A worker that
// lives extends it while the handler runs. Without this option the topic's applies, by default 60 s.
func Timeout(lease time.Duration) JobOption { return func(f *jobFields) { f.timeout = &lease } }

// Retry is how often the job is attempted in all; 0: without a limit. Without this option the topic's applies.
func Retry(attempts int64) JobOption { return func(f *jobFields) { f.retry = &attempts } }

// Backoff says how long the job waits after a failure, as the server writes it: "10s", or what docs/reference names.
func Backoff(spec string) JobOption { return func(f *jobFields) { f.backoff = spec } }

// Priority: among the jobs of a topic that are due, those with the lowest number are first. Default 1024.
func Priority(priority int64) JobOption { return func(f *jobFields) { f.priority = &priority } }

// Group is a name by which jobs of any topics can be cancelled together.
func Group(name string) JobOption { return func(f *jobFields) { f.group = name } }

// Callback is a URL that the server calls when the job is due, instead of handing it to a worker.
func Callback(url string) JobOption { return func(f *jobFields) { f.callback = url } }

// Headers are names and values that travel with the job. Given several times, they add up.
func Headers(headers map[string]string) JobOption {
	return func(f *jobFields) {
		if f.headers == nil {
			f.headers = make(map[string]string, len(headers)+2)
		}
		for name, value := range headers {
			f.headers[name] = value
		}
	}
}

// ConflictOption is what OnConflict returns.
type ConflictOption string

func (o ConflictOption) applyJob(spec *jobSpec) { spec.conflict = o }

// What becomes of a job whose id is taken by one that waits or runs.
const (
	Replace ConflictOption = "replace" // the new job takes its place; this is the default
	Keep    ConflictOption = "keep"    // the old job stays, and there is no error
	Reject  ConflictOption = "reject"  // the old job stays, and the error is ErrConflict
)

// OnConflict says what happens if there is a job with the same topic and id: Replace, Keep or Reject.
func OnConflict(what ConflictOption) Option { return what }

// jobSpec is one job as Enqueue sends it.
type jobSpec struct {
	topic, id string
	payload   []byte
	isMadeID  bool // the library made the id
	in        time.Duration
	at        time.Time
	hasIn     bool
	hasAt     bool
	conflict  ConflictOption
	jobFields
}

func (s *jobSpec) fill(job *NewJob, trace *traceContext) error {
	s.topic, s.id, s.payload = job.Topic, job.ID, job.Payload
	for _, option := range job.Options {
		if option != nil {
			option.applyJob(s)
		}
	}
	if err := s.checkTime(); err != nil {
		return err
	}
	switch s.conflict {
	case "", Replace, Keep, Reject:
	default:
		return invalid("on_conflict: %.40q is not one of replace, keep, reject", string(s.conflict))
	}
	if s.id == "" {
		s.id, s.isMadeID = newID(), true
	}
	if trace != nil {
		trace.addTo(&s.jobFields)
	}
	return nil
}

func (s *jobSpec) checkTime() error {
	if s.hasIn && s.hasAt {
		return invalid("process_at: there is a process_in, too; a job is due at one time only")
	}
	return nil
}

// isRepeatable tells whether the same push again does no harm when nobody knows whether the first one took effect.
// With Reject it would find its own job. An id that the library made can belong to no other job.
func (s *jobSpec) isRepeatable() bool { return s.conflict != Reject || s.isMadeID }

func (s *jobSpec) size() int { return 64 + len(s.topic) + len(s.id) + len(s.payload) }

// encode writes the push. A second push of a job whose id the library made keeps what the first one stored, since that may
// be running.
func (s *jobSpec) encode(c *command, again bool) {
	c.text("PUSH")
	c.text(s.topic)
	if s.hasIn {
		c.duration(s.in)
	} else {
		c.text("0")
	}
	c.bytes(s.payload)
	c.text("ID")
	c.text(s.id)
	if s.hasAt {
		c.text("AT")
		c.moment(s.at)
	}
	switch {
	case s.conflict == Keep, again && s.isMadeID:
		c.text("KEEP")
	case s.conflict == Reject:
	default:
		c.text("REPLACE")
	}
	s.jobFields.encode(c)
}

func (f *jobFields) encode(c *command) {
	if f.priority != nil {
		c.text("PRI")
		c.number(*f.priority)
	}
	if f.retry != nil {
		c.text("ATTEMPTS")
		c.number(*f.retry)
	}
	if f.backoff != "" {
		c.text("BACKOFF")
		c.text(f.backoff)
	}
	if f.timeout != nil {
		c.text("LEASE")
		c.duration(*f.timeout)
	}
	if f.group != "" {
		c.text("GROUP")
		c.text(f.group)
	}
	if f.callback != "" {
		c.text("CALLBACK")
		c.text(f.callback)
	}
	names := make([]string, 0, len(f.headers))
	for name := range f.headers {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		c.text("HEADER")
		c.text(name)
		c.text(f.headers[name])
	}
}

// ---- ids

var idSource struct {
	sync.Mutex
	random [1024]byte
	used   int
}

// newID makes a UUID of version 7: 48 bits of Unix milliseconds, then random bits.
func newID() string {
	var raw [16]byte
	idSource.Lock()
	if idSource.used == 0 || idSource.used+10 > len(idSource.random) {
		if _, err := rand.Read(idSource.random[:]); err != nil {
			panic("delayq: no random numbers: " + err.Error())
		}
		idSource.used = 0
	}
	copy(raw[6:], idSource.random[idSource.used:idSource.used+10])
	idSource.used += 10
	idSource.Unlock()
	ms := uint64(time.Now().UnixMilli())
	for i := 0; i < 6; i++ {
		raw[i] = byte(ms >> (40 - 8*i))
	}
	raw[6] = raw[6]&0x0f | 0x70
	raw[8] = raw[8]&0x3f | 0x80
	var text [36]byte
	hex.Encode(text[:8], raw[:4])
	hex.Encode(text[9:13], raw[4:6])
	hex.Encode(text[14:18], raw[6:8])
	hex.Encode(text[19:23], raw[8:10])
	hex.Encode(text[24:], raw[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

// ---- trace context

// traceContext is what the jobs that a handler makes get from the job that is running.
type traceContext struct{ parent, state string }

func traceFrom(headers map[string]string) *traceContext {
	trace := &traceContext{}
	for name, value := range headers {
		switch strings.ToLower(name) {
		case "traceparent":
			trace.parent = value
		case "tracestate":
			trace.state = value
		}
	}
	if trace.parent == "" {
		return nil
	}
	return trace
}

func (t *traceContext) addTo(f *jobFields) {
	hasState := false
	for name := range f.headers {
		switch strings.ToLower(name) {
		case "traceparent":
			return
		case "tracestate":
			hasState = true
		}
	}
	added := map[string]string{"traceparent": t.parent}
	if t.state != "" && !hasState {
		added["tracestate"] = t.state
	}
	Headers(added)(f)
}
