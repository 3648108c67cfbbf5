package delayq

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Job is a job in its handler.
type Job struct {
	Topic   string
	ID      string
	Payload []byte
	Boday   []byte // the same bytes, under the name that programs of the library over Redis use
	Attempt int    // 1 for the first
	DueAt   time.Time
	Headers map[string]string

	run *run
}

// LeaseUntil returns the end of the lease as of now, by the server's clock. The worker extends it while the handler runs. It
// may ask the server; the zero time means that the server could not be asked.
func (j *Job) LeaseUntil() time.Time {
	if j.run == nil {
		return time.Time{}
	}
	return j.run.leaseUntil()
}

// Func handles one job. If it returns nil the job is done. If it returns an error the attempt failed: the job is retried as
// its backoff says, after the delay of RetryIn, or not at all after Dead. A panic counts as an error.
//
// The context ends when the handler should stop early: Cause says why.
type Func func(ctx context.Context, job *Job) error

// Middleware surrounds every handler of a worker.
type Middleware func(next Func) Func

// Why the context of a handler has ended: Cause returns one of these.
var (
	// ErrCancelled: the job was cancelled. If the handler returns nil it is done nevertheless; an error is not retried.
	ErrCancelled = errors.New("delayq: the job was cancelled")
	// ErrLeaseLost: another worker may have the job. What the handler returns changes nothing.
	ErrLeaseLost = errors.New("delayq: the lease of the job is lost")
	// ErrStopping: the worker stops and its grace is over. An error gives the job back, and the attempt does not count.
	ErrStopping = errors.New("delayq: the worker stops")
)

// Cause returns why the context of a handler has ended, or nil while it has not.
func Cause(ctx context.Context) error {
	if h, ok := ctx.Value(handlerKey{}).(*handlerContext); ok {
		return h.cause()
	}
	return nil
}

// WorkerOption is an option of NewWorker and NewServer.
type WorkerOption func(*workerOptions)

type workerOptions struct {
	concurrency int
	lease       time.Duration
	wait        time.Duration
	grace       time.Duration
}

// Concurrency is how many handlers run at once, default 10.
func Concurrency(handlers int) WorkerOption {
	return func(o *workerOptions) { o.concurrency = handlers }
}

// Lease is for how long the worker holds a job without an extension, at least 100 ms. It overrides the Timeout of the job and
// the setting of the topic.
func Lease(length time.Duration) WorkerOption { return func(o *workerOptions) { o.lease = length } }

// Wait is how long one request waits for a job, default 30 s.
func Wait(most time.Duration) WorkerOption { return func(o *workerOptions) { o.wait = most } }

// Grace is how long handlers may go on when the worker is stopped, default 10 s.
func Grace(length time.Duration) WorkerOption { return func(o *workerOptions) { o.grace = length } }

// Worker takes jobs that are due and runs the handlers of their topics.
//
// It extends leases while handlers run, reports what they return, and goes on by itself after the server was away. If its
// process dies, its jobs go to other workers when their leases end.
type Worker struct {
	config     *Config
	options    workerOptions
	handlers   map[string]Func
	middleware []Middleware
	stopOnce   sync.Once
	stopping   chan struct{}

	mu      sync.Mutex
	started bool
}

// NewWorker returns a worker. It connects in Run, with connections of its own.
func NewWorker(config Config, options ...WorkerOption) *Worker {
	w := &Worker{
		config:   config.withDefaults(),
		options:  workerOptions{concurrency: 10, wait: 30 * time.Second, grace: 10 * time.Second},
		handlers: map[string]Func{}, stopping: make(chan struct{}),
	}
	for _, option := range options {
		option(&w.options)
	}
	return w
}

// Handle sets the handler of a topic. Several jobs of the topic are handled at once. Call it before Run.
func (w *Worker) Handle(topic string, handler Func) {
	if handler == nil {
		panic("delayq: the handler of " + topic + " is nil")
	}
	w.handlers[topic] = handler
}

// Use adds middleware around all handlers; the first is outermost. Call it before Run.
func (w *Worker) Use(middleware ...Middleware) { w.middleware = append(w.middleware, middleware...) }

// Stop asks the worker to stop, and does not wait for it: Run returns when it has stopped. It may be called in a handler.
func (w *Worker) Stop() { w.stopOnce.Do(func() { close(w.stopping) }) }

// Run works until Stop is called or the context ends. Then handlers may go on for the grace; they are told to stop when it is
// over, and the context of Run does not end theirs. When Run returns, the results have reached the server.
//
// It returns nil after a stop. It returns an error if the server refuses to hand out jobs to this worker at all: a wrong token,
// for example. A server that is away is waited for.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.check(); err != nil {
		return err
	}
	w.mu.Lock()
	if w.started {
		w.mu.Unlock()
		return errors.New("delayq: Run was called before; make a new worker")
	}
	w.started = true
	w.mu.Unlock()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-ctx.Done():
			w.Stop()
		case <-ended:
		}
	}()
	return newSession(w, ctx).run()
}

func (w *Worker) check() error {
	switch o := w.options; {
	case len(w.handlers) == 0:
		return invalid("topic: the worker has no handler")
	case o.concurrency < 1:
		return invalid("concurrency: must be at least 1")
	case o.lease != 0 && (o.lease < minLease || o.lease > maxLease):
		return invalid("lease: %v is out of range: 100ms to 24h is allowed", o.lease)
	case o.wait < 0 || o.wait > time.Hour:
		return invalid("wait: %v is out of range: 0 to 1h is allowed", o.wait)
	case o.grace < 0:
		return invalid("grace: must not be negative")
	}
	keywords := 0
	for topic := range w.handlers {
		if isPopKeyword(topic) {
			keywords++
		}
	}
	if keywords > 1 {
		return invalid("topic: at most one topic of a worker may have the name of an option of POP")
	}
	return nil
}

func isPopKeyword(topic string) bool {
	switch strings.ToUpper(topic) {
	case "COUNT", "WAIT", "LEASE", "AUTOACK", "HEADERS":
		return true
	}
	return false
}

// topics returns the worker's topics in the order of one pop. The server prefers the first, so the order changes: no topic
// has to wait until the others are empty.
func (w *Worker) topics() []string {
	topics := make([]string, 0, len(w.handlers))
	for topic := range w.handlers {
		topics = append(topics, topic)
	}
	rand.Shuffle(len(topics), func(i, j int) { topics[i], topics[j] = topics[j], topics[i] })
	for i, topic := range topics {
		if isPopKeyword(topic) { // only the first word of a POP is always a topic
			topics[0], topics[i] = topics[i], topics[0]
		}
	}
	return topics
}

// call runs the handler of a job.
func (w *Worker) call(ctx context.Context, job *Job) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			w.config.Logger.Printf("delayq: the handler of job %s of %s panicked: %v\n%s", job.ID, job.Topic, problem, debug.Stack())
			err = fmt.Errorf("panic: %v", problem)
		}
	}()
	handler := w.handlers[job.Topic]
	if handler == nil {
		return errors.New("the worker has no handler for this topic")
	}
	for i := len(w.middleware) - 1; i >= 0; i-- {
		handler = w.middleware[i](handler)
	}
	return handler(ctx, job)
}

// ---- the context of a handler

type handlerKey struct{}

// handlerContext has the values of the context of Run, and an end of its own.
type handlerContext struct {
	values context.Context
	done   chan struct{}
	trace  *traceContext

	mu     sync.Mutex
	reason error
}

func newHandlerContext(values context.Context, job *Job) *handlerContext {
	return &handlerContext{values: values, done: make(chan struct{}), trace: traceFrom(job.Headers)}
}

func (h *handlerContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (h *handlerContext) Done() <-chan struct{}       { return h.done }

func (h *handlerContext) Err() error {
	if h.cause() != nil {
		return context.Canceled
	}
	return nil
}

func (h *handlerContext) Value(key any) any {
	if key == (handlerKey{}) {
		return h
	}
	return h.values.Value(key)
}

func (h *handlerContext) cause() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reason
}

// end tells the handler to stop. Only the first reason is told.
func (h *handlerContext) end(reason error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason == nil {
		h.reason = reason
		close(h.done)
	}
}

// traceOf returns the trace context of the job whose handler has this context, or nil.
func traceOf(ctx context.Context) *traceContext {
	if h, ok := ctx.Value(handlerKey{}).(*handlerContext); ok {
		return h.trace
	}
	return nil
}

// ---- the shape of the library over Redis

// Handler handles the jobs of one topic.
type Handler interface {
	Topic() string
	Execute(ctx context.Context, job *Job) error
}

// Server is a Worker that also stops at SIGINT and SIGTERM. By default it runs ten handlers for each of its topics.
type Server struct {
	*Worker
}

// NewServer returns a server.
func NewServer(config RedisConfiguration, options ...WorkerOption) *Server {
	return &Server{NewWorker(config, append([]WorkerOption{Concurrency(0)}, options...)...)}
}

// HandlerFunc sets the handler of a topic. Call it before Run.
func (s *Server) HandlerFunc(topic string, handler Handler) {
	if handler == nil {
		panic("delayq: the handler of " + topic + " is nil")
	}
	s.Handle(topic, handler.Execute)
}

// Run is Worker.Run, and stops at SIGINT and SIGTERM, too.
func (s *Server) Run(ctx context.Context) error {
	if s.options.concurrency == 0 {
		s.options.concurrency = 10 * len(s.handlers)
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	return s.Worker.Run(ctx)
}
