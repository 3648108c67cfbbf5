// Package delayq is a client of the delay queue server delayq: producers store jobs that fall due later, and workers run a
// handler for each job that is due.
//
//	client := delayq.NewClient(delayq.Config{Host: "127.0.0.1", Port: "9278"})
//	err := client.Enqueue("order", "order:1", []byte("close it"), delayq.ProcessIn(30*time.Minute))
//
//	worker := delayq.NewWorker(delayq.Config{})
//	worker.Handle("order", func(ctx context.Context, job *delayq.Job) error { return closeOrder(ctx, job.ID) })
//	err = worker.Run(ctx)
//
// A job is handed over when it is due, and again if the handler fails or its process dies: write handlers so that they may run
// twice.
package delayq

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"strings"
	"time"
)

// Config says how to reach the server. The zero value is a server on this machine without tokens.
type Config struct {
	Host string // default "127.0.0.1"
	Port string // the server's RESP port, default "9278"

	Token     string // if the server has tokens
	TokenName string // optional; if it is set, the token must have this name

	TLS *tls.Config // nil: no TLS

	ConnectTimeout time.Duration // default 5 s
	// Timeout is how long to wait for the answer to one request, default 30 s. What a worker's pop waits is added.
	Timeout time.Duration
	// RetryFor is how long a call goes on trying while the server is away or refuses with an error that is retryable, default
	// 15 s; negative: not at all. What is not safe to send twice is tried again only if it was not sent.
	RetryFor time.Duration

	Logger Logger // default log.Default()
}

// RedisConfiguration is the name of Config in programs that were written for the library of the same name over Redis.
type RedisConfiguration = Config

// Logger is what *log.Logger has. For log/slog use slog.NewLogLogger.
type Logger interface {
	Printf(format string, values ...any)
}

func (c Config) withDefaults() *Config {
	setDefault(&c.Host, "127.0.0.1")
	setDefault(&c.Port, "9278")
	setDefault(&c.ConnectTimeout, 5*time.Second)
	setDefault(&c.Timeout, 30*time.Second)
	setDefault(&c.RetryFor, 15*time.Second)
	if c.Logger == nil {
		c.Logger = log.Default()
	}
	return &c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c *Config) address() string { return net.JoinHostPort(c.Host, c.Port) }

// Client stores, cancels and looks up jobs and schedules. It connects when it is first used and again when the connection was
// lost. Any number of goroutines may use one client; their calls share one connection and join into batches.
type Client struct {
	config *Config
	link   link
}

// NewClient returns a client. It does not connect yet.
func NewClient(config Config) *Client {
	complete := config.withDefaults()
	return &Client{config: complete, link: link{config: complete}}
}

// Close ends the connection. Calls that are under way fail.
func (c *Client) Close() error {
	c.link.close()
	return nil
}

// What kinds of replies a command may have.
const (
	isText   = "+$"
	isNumber = ":"
	isMap    = "%"
	isList   = "*"
	isNull   = "_"
)

// repeat says what may be done when nobody knows whether a command took effect.
type repeat int

const (
	never repeat = iota // not to be sent again once it was sent
	safe                // the same command again does no harm
)

// ask sends one command and returns its reply, whose type is one of kinds. Error replies are errors.
func (c *Client) ask(ctx context.Context, words *command, again repeat, kinds string) (value, error) {
	wire := words.appendTo(nil)
	retry := newRetry(c.config)
	for {
		r := newRequest(wire, 1)
		err := c.send(ctx, r)
		if err == nil {
			if err = r.replies[0].failure(); err == nil {
				if strings.IndexByte(kinds, r.replies[0].kind) < 0 {
					return value{}, unexpected(r.replies[0])
				}
				return r.replies[0], nil
			}
		}
		if (isUnknown(err) && again != safe) || !retry.after(ctx, err) {
			return value{}, err
		}
	}
}

// send carries a request over the current connection and waits for its replies.
func (c *Client) send(ctx context.Context, r *request) error {
	current, err := c.link.get(ctx)
	if err != nil {
		return err
	}
	return current.do(ctx, r)
}

// retry decides whether and when a call tries again.
type retry struct {
	until    time.Time
	failures int
}

func newRetry(config *Config) *retry {
	if config.RetryFor < 0 {
		return &retry{}
	}
	return &retry{until: time.Now().Add(config.RetryFor)}
}

// after waits until the next attempt. It returns false if there is none: the error is not retryable, or the time is over.
func (r *retry) after(ctx context.Context, err error) bool {
	var known *Error
	if !errors.As(err, &known) || !known.Retryable {
		return false
	}
	pause := backoff(r.failures, longBackoff)
	if known.RetryAfter > pause {
		pause = known.RetryAfter
	}
	r.failures++
	if time.Now().Add(pause).After(r.until) {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// ---- storing jobs

// Enqueue stores a job. It is due at once, or when ProcessIn or ProcessAt say. An answer without an error means that the
// job is on the server's disk. A job with the same topic and id is replaced, unless OnConflict says otherwise. An empty id
// means one that the library makes: EnqueueContext returns it.
func (c *Client) Enqueue(topic, id string, payload []byte, options ...Option) error {
	_, err := c.EnqueueContext(context.Background(), topic, id, payload, options...)
	return err
}

// EnqueueContext is Enqueue with a context, and returns the id of the job. In a handler give it the handler's context: then
// the job gets the trace context of the job that is running.
func (c *Client) EnqueueContext(ctx context.Context, topic, id string, payload []byte, options ...Option) (string, error) {
	results := [1]Result{}
	c.enqueueAll(ctx, []NewJob{{Topic: topic, ID: id, Payload: payload, Options: options}}, results[:])
	return results[0].ID, results[0].Err
}

// NewJob is one job for EnqueueMany.
type NewJob struct {
	Topic   string
	ID      string // empty: the library makes one
	Payload []byte
	Options []Option
}

// Result is what became of one job of EnqueueMany: its id, or an error.
type Result struct {
	ID  string
	Err error
}

// EnqueueMany stores many jobs, each as Enqueue does. There is a result for each, in the same order; some may be stored and
// others not. The error is nil if all are stored.
func (c *Client) EnqueueMany(ctx context.Context, jobs []NewJob) ([]Result, error) {
	results := make([]Result, len(jobs))
	c.enqueueAll(ctx, jobs, results)
	failed, first := 0, error(nil)
	for i := range results {
		if results[i].Err != nil {
			if failed++; first == nil {
				first = results[i].Err
			}
		}
	}
	if failed > 0 {
		return results, fmt.Errorf("delayq: %d of %d jobs are not stored: %w", failed, len(jobs), first)
	}
	return results, nil
}

const (
	jobsInRequest  = 512
	bytesInRequest = 256 << 10
	requestsAtOnce = 16 // of one call
)

// push is the state of one job of a call.
type push struct {
	index int
	spec  *jobSpec
	again bool // an earlier attempt may have stored it
}

func (c *Client) enqueueAll(ctx context.Context, jobs []NewJob, results []Result) {
	trace := traceOf(ctx)
	pushes := make([]push, 0, len(jobs))
	specs := make([]jobSpec, len(jobs))
	for i := range jobs {
		spec := &specs[i]
		if results[i].Err = spec.fill(&jobs[i], trace); results[i].Err == nil {
			results[i].ID = spec.id
			pushes = append(pushes, push{index: i, spec: spec})
		}
	}
	retry := newRetry(c.config)
	for len(pushes) > 0 {
		pushes = c.pushOnce(ctx, pushes, results)
		var latest error
		for _, p := range pushes {
			latest = results[p.index].Err
		}
		if len(pushes) == 0 || !retry.after(ctx, latest) {
			break
		}
	}
	for i := range results {
		if results[i].Err != nil {
			results[i].ID = ""
		}
	}
}

// part is one request of a call and the jobs that it stores.
type part struct {
	request *request
	pushes  []push
	err     error // it could not be sent
}

// pushOnce sends these jobs once and sets their results. It returns those that may be sent again.
func (c *Client) pushOnce(ctx context.Context, pushes []push, results []Result) (again []push) {
	current, err := c.link.get(ctx)
	var underWay []part
	words := &command{}
	for len(pushes) > 0 {
		next := part{pushes: pushes, err: err}
		if err == nil {
			wire, count := encodePushes(words, pushes)
			next.request, next.pushes = newRequest(wire, count), pushes[:count]
			err = current.send(ctx, next.request)
			next.err = err
		}
		pushes = pushes[len(next.pushes):]
		if underWay = append(underWay, next); len(underWay) == requestsAtOnce {
			again = append(again, underWay[0].settle(ctx, results)...)
			underWay = underWay[1:]
		}
	}
	for _, p := range underWay {
		again = append(again, p.settle(ctx, results)...)
	}
	return again
}

func encodePushes(words *command, pushes []push) (wire []byte, count int) {
	wire = make([]byte, 0, least(len(pushes)*(pushes[0].spec.size()+16), bytesInRequest+bytesInRequest/4))
	for count < len(pushes) && count < jobsInRequest {
		words.reset()
		pushes[count].spec.encode(words, pushes[count].again)
		if count > 0 && len(wire)+len(words.words) > bytesInRequest {
			break
		}
		wire = words.appendTo(wire)
		count++
	}
	return wire, count
}

// settle waits for the replies, sets the results, and returns the jobs that may be sent again.
func (p *part) settle(ctx context.Context, results []Result) (again []push) {
	var replies []value
	err := p.err
	if err == nil {
		select {
		case <-p.request.done:
			replies, err = p.request.replies, p.request.result()
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	for i, one := range p.pushes {
		result := &results[one.index]
		if i < len(replies) {
			result.Err = replies[i].failure()
		} else {
			result.Err = err
		}
		unknown := isUnknown(result.Err)
		if isRetryable(result.Err) && (!unknown || one.spec.isRepeatable()) {
			one.again = one.again || unknown
			again = append(again, one)
		}
	}
	return again
}

// ---- single jobs

// What Dequeue found.
const (
	DequeueCancelled = "cancelled" // it was waiting and is gone
	DequeueReserved  = "reserved"  // it is running: its handler is told, and a failure is not retried
	DequeueDone      = "done"      // too late: it is done
	DequeueDead      = "dead"      // it failed for good before
	DequeueUnknown   = "unknown"   // there is no such job
)

// Dequeue cancels a job and returns one of the five words above.
func (c *Client) Dequeue(topic, id string) (string, error) {
	return c.DequeueContext(context.Background(), topic, id)
}

// DequeueContext is Dequeue with a context.
func (c *Client) DequeueContext(ctx context.Context, topic, id string) (string, error) {
	reply, err := c.ask(ctx, newCommand("CANCEL", topic, id), never, isText)
	return reply.text(), err
}

// CancelGroup cancels all jobs of a group, in all topics. It returns how many were waiting or running.
func (c *Client) CancelGroup(ctx context.Context, group string) (int64, error) {
	reply, err := c.ask(ctx, newCommand("CANCELGROUP", group), never, isNumber)
	return reply.number, err
}

// Reschedule moves a waiting job to another time: ProcessIn or ProcessAt, exactly one of them.
func (c *Client) Reschedule(ctx context.Context, topic, id string, when ...TimeOption) error {
	var spec jobSpec
	for _, option := range when {
		option.applyJob(&spec)
	}
	if err := spec.checkTime(); err != nil {
		return err
	}
	words := newCommand("RESCHEDULE", topic, id)
	switch {
	case spec.hasAt:
		words.text("AT")
		words.moment(spec.at)
	case spec.hasIn:
		words.duration(spec.in)
	default:
		return invalid("process_in or process_at: one of them is needed")
	}
	_, err := c.ask(ctx, words, never, isText)
	return err
}

// JobInfo is what the server knows about a job. Times and texts that it does not have are zero.
type JobInfo struct {
	Topic           string
	ID              string
	State           string // "delayed", "ready", "reserved", "done" or "dead"
	Payload         []byte
	DueAt           time.Time
	PushedAt        time.Time
	Attempts        int // how often it was handed over
	Priority        int64
	Group           string
	Until           time.Time // the end of the lease, or of the time for which a done or dead job is kept
	Callback        string
	Outcome         string // the last error
	CancelRequested bool   // it was cancelled while it is running
	Headers         map[string]string
}

// Get looks a job up. The error is ErrNotFound if there is none.
func (c *Client) Get(ctx context.Context, topic, id string) (*JobInfo, error) {
	reply, err := c.ask(ctx, newCommand("GET", topic, id), safe, isMap+isNull)
	if err != nil {
		return nil, err
	}
	if reply.isNull() {
		return nil, &Error{Code: "not_found", Message: "there is no such job"}
	}
	return readJobInfo(reply), nil
}

func readJobInfo(reply value) *JobInfo {
	f := readFields(reply)
	return &JobInfo{
		Topic: f.text("topic"), ID: f.text("id"), State: f.text("state"), Payload: f["body"].data,
		DueAt: f.moment("due_ms"), PushedAt: f.moment("pushed_ms"), Attempts: int(f.number("attempts")),
		Priority: f.number("priority"), Group: f.text("group"), Until: f.moment("until_ms"), Callback: f.text("callback"),
		Outcome: f.text("outcome"), CancelRequested: f.number("cancel_requested") != 0, Headers: f.headers(),
	}
}
