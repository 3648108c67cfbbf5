package delayq

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/rand"
	"net"
	"os"
	"runtime"
	"sync"
	"time"
)

const (
	maxWaiting    = 1 << 14   // requests of one connection whose replies have not come; callers wait beyond
	writeTogether = 256 << 10 // bytes that one write collects from several requests
)

// request is one or more commands whose replies come together. Its replies are valid once done was signalled; if err is set,
// there may be fewer of them than commands.
type request struct {
	wire    []byte
	count   int
	wait    time.Duration // for how long the server itself may wait
	replies []value
	err     error
	sent    bool // the server may have seen it; valid if err is set
	done    chan struct{}
}

func newRequest(wire []byte, count int) *request {
	return &request{wire: wire, count: count, replies: make([]value, 0, count), done: make(chan struct{}, 1)}
}

// conn is one connection. Requests of all goroutines share it: those that come while a write is under way go out together with
// the next one, and the server answers in their order.
type conn struct {
	net     net.Conn
	replies *replyReader
	timeout time.Duration
	room    chan struct{} // one for each request between send and its replies
	wake    chan struct{} // for the writer
	closed  chan struct{}

	mu     sync.Mutex
	queue  []*request // not written yet
	flight []*request // written, oldest first
	err    error      // why it is closed

	deadlineSet time.Time
}

// dial connects and introduces itself.
func dial(ctx context.Context, config *Config) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, config.ConnectTimeout)
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", config.address())
	if err != nil {
		return nil, lostError(err, false)
	}
	if config.TLS != nil {
		settings := config.TLS.Clone()
		if settings.ServerName == "" {
			settings.ServerName = config.Host
		}
		raw = tls.Client(raw, settings)
	}
	c := &conn{
		net: raw, replies: newReplyReader(raw), timeout: config.Timeout,
		room: make(chan struct{}, maxWaiting), wake: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	deadline, _ := ctx.Deadline()
	if err := c.greet(config, deadline); err != nil {
		raw.Close()
		return nil, err
	}
	go c.write()
	go c.read()
	return c, nil
}

func (c *conn) greet(config *Config, deadline time.Time) error {
	hello := newCommand("HELLO", "3")
	if config.Token != "" {
		name := config.TokenName
		if name == "" {
			name = "default"
		}
		hello = newCommand("HELLO", "3", "AUTH", name, config.Token)
	}
	hello.text("SETNAME")
	hello.text("delayq-go")
	if err := c.net.SetDeadline(deadline); err != nil {
		return lostError(err, false)
	}
	if _, err := c.net.Write(hello.appendTo(nil)); err != nil {
		return greetError(err)
	}
	reply, err := c.replies.read()
	if err != nil {
		return greetError(err)
	}
	if err := reply.failure(); err != nil {
		return err
	}
	if err := c.net.SetDeadline(time.Time{}); err != nil {
		return lostError(err, false)
	}
	return nil
}

// greetError tells what will not be better at the next attempt from what may be.
func greetError(err error) *Error {
	lost := lostError(err, false)
	var (
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		wrong    x509.CertificateInvalidError
		notTLS   tls.RecordHeaderError
	)
	if errors.As(err, &unknown) || errors.As(err, &hostname) || errors.As(err, &wrong) || errors.As(err, &notTLS) {
		lost.Retryable = false
	}
	return lost
}

// send puts a request into the queue. It waits while there are too many. After an error the request was not sent.
func (c *conn) send(ctx context.Context, r *request) error {
	select {
	case c.room <- struct{}{}:
	default:
		select {
		case c.room <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		case <-c.closed:
		}
	}
	c.mu.Lock()
	if c.err != nil {
		err := c.err
		c.mu.Unlock()
		return lostError(err, false)
	}
	c.queue = append(c.queue, r)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

// do sends a request and waits for its replies.
func (c *conn) do(ctx context.Context, r *request) error {
	if err := c.send(ctx, r); err != nil {
		return err
	}
	select {
	case <-r.done:
		return r.result()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *request) result() error {
	if r.err != nil {
		return lostError(r.err, r.sent)
	}
	return nil
}

func (c *conn) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// close ends the connection; requests without replies fail.
func (c *conn) close(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	close(c.closed)
	flight, queue := c.flight, c.queue
	c.flight, c.queue = nil, nil
	c.mu.Unlock()
	c.net.Close()
	for _, r := range flight {
		r.err, r.sent = err, true
		r.done <- struct{}{}
	}
	for _, r := range queue {
		r.err = err
		r.done <- struct{}{}
	}
}

// closeWrite tells the server that no more commands come, so that a pop that waits there ends. Replies can still be read.
func (c *conn) closeWrite() {
	if half, ok := c.net.(interface{ CloseWrite() error }); ok {
		if half.CloseWrite() == nil {
			return
		}
	}
	c.close(io.ErrClosedPipe)
}

// ---- writing

func (c *conn) write() {
	var together []byte
	for {
		select {
		case <-c.wake:
		case <-c.closed:
			return
		}
		runtime.Gosched() // others that are about to send go out with this write
		for {
			wires := c.takeQueue()
			if len(wires) == 0 {
				break
			}
			together = together[:0]
			for _, wire := range wires {
				together = append(together, wire...)
			}
			if err := c.writeOut(together); err != nil {
				c.close(err)
				return
			}
			if cap(together) > 4*writeTogether {
				together = nil
			}
		}
	}
}

// takeQueue moves requests from the queue to those in flight, and returns their bytes.
func (c *conn) takeQueue() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return nil
	}
	wires := make([][]byte, 0, len(c.queue))
	taken, bytes, wait := 0, 0, time.Duration(0)
	for _, r := range c.queue {
		if taken > 0 && bytes+len(r.wire) > writeTogether {
			break
		}
		wires = append(wires, r.wire)
		taken++
		bytes += len(r.wire)
		wait += r.wait
	}
	if len(c.flight) == 0 {
		c.setReadDeadline(c.timeout + wait)
	}
	c.flight = append(c.flight, c.queue[:taken]...)
	c.queue = append(c.queue[:0], c.queue[taken:]...)
	return wires
}

func (c *conn) writeOut(wire []byte) error {
	if err := c.net.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return err
	}
	_, err := c.net.Write(wire)
	return err
}

// setReadDeadline sets how long the next bytes may take; 0: for ever. REQUIRES: mu is held.
func (c *conn) setReadDeadline(from time.Duration) {
	deadline := time.Time{}
	if from > 0 {
		c.deadlineSet = time.Now()
		deadline = c.deadlineSet.Add(from)
	}
	// It fails only if the connection is closed, and then so does the read.
	_ = c.net.SetReadDeadline(deadline)
}

// ---- reading

func (c *conn) read() {
	for {
		reply, err := c.replies.read()
		if err == nil {
			err = c.accept(reply)
		}
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err = errors.New("no answer within the timeout")
			}
			c.close(err)
			return
		}
	}
}

func (c *conn) accept(reply value) error {
	c.mu.Lock()
	if len(c.flight) == 0 {
		c.mu.Unlock()
		if err := reply.failure(); err != nil {
			return err // for example: the server has too many connections
		}
		return protocolError("a reply to nothing")
	}
	r := c.flight[0]
	r.replies = append(r.replies, reply)
	if len(r.replies) < r.count {
		c.mu.Unlock()
		return nil
	}
	c.flight[0] = nil
	c.flight = c.flight[1:]
	if len(c.flight) == 0 {
		c.setReadDeadline(0)
	} else if c.replies.in.Buffered() == 0 || time.Since(c.deadlineSet) > c.timeout/4 {
		c.setReadDeadline(c.timeout + c.flight[0].wait)
	}
	c.mu.Unlock()
	<-c.room
	r.done <- struct{}{}
	return nil
}

// ---- the connection that a client has at the moment

const (
	firstBackoff = 50 * time.Millisecond
	longBackoff  = 2 * time.Second
)

// backoff returns how long to wait before the attempt after this many failures.
func backoff(failures int, longest time.Duration) time.Duration {
	delay := longest
	if failures < 16 {
		if d := firstBackoff << failures; d < longest {
			delay = d
		}
	}
	return delay/2 + time.Duration(rand.Int63n(int64(delay/2)+1))
}

// link keeps one connection and makes a new one when it was lost. Only one attempt is under way at a time; all wait for it.
type link struct {
	config *Config

	mu       sync.Mutex
	current  *conn
	attempt  *attempt
	failures int       // attempts in a row that failed
	nextDial time.Time // not before
	closed   bool
}

type attempt struct {
	done chan struct{}
	conn *conn
	err  error
}

// get returns a connection that is open, as far as it is known.
func (l *link) get(ctx context.Context) (*conn, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, ErrClosed
	}
	if l.current != nil && !l.current.isClosed() {
		defer l.mu.Unlock()
		return l.current, nil
	}
	if l.attempt == nil {
		l.attempt = &attempt{done: make(chan struct{})}
		go l.connect(l.attempt, time.Until(l.nextDial))
	}
	pending := l.attempt
	l.mu.Unlock()
	select {
	case <-pending.done:
		return pending.conn, pending.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *link) connect(a *attempt, pause time.Duration) {
	if pause > 0 {
		time.Sleep(pause)
	}
	a.conn, a.err = dial(context.Background(), l.config)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempt = nil
	l.current = a.conn
	if a.err == nil {
		if l.failures > 0 {
			l.config.Logger.Printf("delayq: connected to %s again", l.config.address())
		}
		l.failures, l.nextDial = 0, time.Time{}
		if l.closed {
			a.conn.close(ErrClosed)
			a.conn, a.err = nil, ErrClosed
		}
	} else {
		if l.failures == 0 {
			l.config.Logger.Printf("delayq: cannot connect to %s, trying again: %v", l.config.address(), a.err)
		}
		l.nextDial = time.Now().Add(backoff(l.failures, longBackoff))
		l.failures++
	}
	close(a.done)
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.current != nil {
		l.current.close(ErrClosed)
	}
}
