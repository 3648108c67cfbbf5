package delayq

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	mathrand "math/rand"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestErrorReplies(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "spec", "replies.json"))
	must(t, err)
	var table struct {
		Replies []struct {
			Line, Code, Message string
			Retryable           bool
			RetryAfter          *int64 `json:"retry_after"`
		}
	}
	must(t, json.Unmarshal(data, &table))
	if len(table.Replies) < 20 {
		t.Fatalf("%d replies", len(table.Replies))
	}
	for _, row := range table.Replies {
		reply, err := newReplyReader(strings.NewReader(row.Line + "\r\n")).read()
		must(t, err)
		var got *Error
		if !errors.As(reply.failure(), &got) {
			t.Fatalf("%q is no error", row.Line)
		}
		after := time.Duration(0)
		if row.RetryAfter != nil {
			after = time.Duration(*row.RetryAfter) * time.Millisecond
		}
		if got.Code != row.Code || got.Message != row.Message || got.Retryable != row.Retryable || got.RetryAfter != after {
			t.Errorf("%q is %+v", row.Line, got)
		}
		if !errors.Is(got, &Error{Code: row.Code}) || errors.Is(got, &Error{Code: "another"}) {
			t.Errorf("errors.Is does not compare the code of %v", got)
		}
	}
}

func TestRepliesAreRead(t *testing.T) {
	for text, want := range map[string]string{
		"+OK\r\n":                        "OK",
		"$5\r\na\r\nbc\r\n":              "a\r\nbc",
		"*2\r\n:1\r\n$-1\r\n":            "[1 null]",
		"%1\r\n$1\r\na\r\n*1\r\n_\r\n":   "[a [null]]",
		"*-1\r\n":                        "null",
		"#t\r\n":                         "1",
		",1.5\r\n":                       "1.5",
		"~1\r\n:-7\r\n":                  "[-7]",
		"!9\r\nINVALID x\r\n":            "-INVALID x",
		"$0\r\n\r\n":                     "",
		"*0\r\n":                         "[]",
		"-STALELEASE gone\r\n":           "-STALELEASE gone",
		"*1\r\n%0\r\n":                   "[[]]",
		":9223372036854775807\r\n":       "9223372036854775807",
		"$3\r\n\xff\x00\x01\r\n":         "\xff\x00\x01",
		"*2\r\n*1\r\n:1\r\n*1\r\n:2\r\n": "[[1] [2]]",
	} {
		reply, err := newReplyReader(strings.NewReader(text)).read()
		if err != nil || describe(reply) != want {
			t.Errorf("%q is %q, %v", text, describe(reply), err)
		}
	}
}

func describe(v value) string {
	switch v.kind {
	case ':':
		return fmt.Sprint(v.number)
	case '_':
		return "null"
	case '-':
		return "-" + v.text()
	case '*', '%':
		var parts []string
		for _, item := range v.items {
			parts = append(parts, describe(item))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return v.text()
}

func TestMalformedRepliesAreErrors(t *testing.T) {
	for name, text := range map[string]string{
		"unknown type": "?1\r\n", "empty line": "\r\n", "no carriage return": "+OK\n", "length of a text": "$x\r\n",
		"negative length": "$-2\r\n", "text too long": "$1000000000000\r\n", "no end of a text": "$1\r\nabc\r\n",
		"too many items": "*1000000000\r\n", "too deep": strings.Repeat("*1\r\n", 20) + ":1\r\n", "cut text": "$5\r\nab",
		"cut list": "*2\r\n:1\r\n", "long line": "+" + strings.Repeat("x", maxLineBytes) + "\r\n", "number": ":12a\r\n",
		"cut large text": "$3000000\r\n" + strings.Repeat("x", 2000000),
	} {
		if reply, err := newReplyReader(strings.NewReader(text)).read(); err == nil {
			t.Errorf("%s: %q is read as %s", name, text[:least(len(text), 40)], describe(reply))
		}
	}
}

// The bound of a whole reply is reached by a list of texts that are each small enough.
func TestAReplyIsBounded(t *testing.T) {
	text := "$" + fmt.Sprint(maxReplyBytes/4) + "\r\n"
	body := bytes.Repeat([]byte("x"), maxReplyBytes/4)
	var in bytes.Buffer
	in.WriteString("*5\r\n")
	for i := 0; i < 5; i++ {
		in.WriteString(text)
		in.Write(body)
		in.WriteString("\r\n")
	}
	var problem protocolError
	if _, err := newReplyReader(&in).read(); !errors.As(err, &problem) {
		t.Errorf("the error is %v", err)
	}
}

func FuzzReply(f *testing.F) {
	for _, seed := range []string{"+OK\r\n", "*2\r\n:1\r\n$1\r\na\r\n", "%1\r\n+a\r\n_\r\n", "-ERR x\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for in := newReplyReader(bytes.NewReader(data)); ; {
			reply, err := in.read()
			if err != nil {
				return
			}
			_ = reply.failure()
			_ = readJobInfo(reply)
			_, _ = readSchedule(reply, nil)
		}
	})
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0s": 0, "250ms": 250 * time.Millisecond, "1h30m": 90 * time.Minute, "7d": 7 * 24 * time.Hour, "1.5s": 1500 * time.Millisecond,
		"1m1.5s": 61500 * time.Millisecond,
	} {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "s", "1", "1x", "1h-1m", "a while", "1..5s"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
	c := newCommand()
	c.duration(1500 * time.Microsecond) // never early
	c.duration(-time.Millisecond)
	c.moment(time.Unix(1900000000, 123_000_001))
	c.moment(time.Unix(-2, 500_000_000))
	want := "*4\r\n$3\r\n2ms\r\n$4\r\n-1ms\r\n$14\r\n1900000000.124\r\n$6\r\n-1.500\r\n"
	if got := string(c.appendTo(nil)); got != want {
		t.Errorf("%q", got)
	}
}

func TestIDsAreVersion7AndDiffer(t *testing.T) {
	seen := map[string]bool{}
	for i := 0; i < 10000; i++ {
		id := newID()
		if !uuid7.MatchString(id) || seen[id] {
			t.Fatalf("%q", id)
		}
		seen[id] = true
	}
}

func TestReasonsAreCleanedAndCut(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                         "plain",
		"a\x00b\tc\nd\re\x7ff\u0085g":   "a b\tc\nd e f g",
		"bad \xff\xfe utf8":             "bad \uFFFD utf8",
		strings.Repeat("x", 999) + "é!": strings.Repeat("x", 999),
		strings.Repeat("x", 1000):       strings.Repeat("x", 1000),
		strings.Repeat("€", 1000):       strings.Repeat("€", 333),
	} {
		if got := cleanReason(text); got != want {
			t.Errorf("%.40q is %.40q", text, got)
		}
	}
}

// ---- a server that does what a test wants

type exchange struct {
	words []string
	conn  net.Conn
	count int // of this verb, over all connections, from 1
}

// fakeServer answers HELLO itself and every other command with what answer returns. "" is no answer.
func fakeServer(t *testing.T, answer func(e exchange) string) Config {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	var mu sync.Mutex
	counts := map[string]int{}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for in := newReplyReader(c); ; {
					command, err := in.read()
					if err != nil {
						return
					}
					e := exchange{conn: c}
					for _, word := range command.items {
						e.words = append(e.words, word.text())
					}
					mu.Lock()
					counts[e.words[0]]++
					e.count = counts[e.words[0]]
					mu.Unlock()
					reply := "%0\r\n"
					if e.words[0] != "HELLO" {
						reply = answer(e)
					}
					if _, err := c.Write([]byte(reply)); err != nil {
						return
					}
				}
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return Config{Port: port, Logger: testLogger(t)}
}

func fakeClient(t *testing.T, config Config) *Client {
	c := NewClient(config)
	t.Cleanup(func() { c.Close() })
	return c
}

// What a client sends again when the connection was lost before the answer came.
func TestOnlyWhatIsSafeIsSentAgain(t *testing.T) {
	ctx := testContext(t)
	calls := map[string]struct {
		verb  string
		again bool
		call  func(c *Client) error
	}{
		"enqueue": {"PUSH", true, func(c *Client) error { return c.Enqueue("t", "1", nil) }},
		"keep":    {"PUSH", true, func(c *Client) error { return c.Enqueue("t", "1", nil, OnConflict(Keep)) }},
		"reject":  {"PUSH", false, func(c *Client) error { return c.Enqueue("t", "1", nil, OnConflict(Reject)) }},
		"reject, an id of the library": {"PUSH", true, func(c *Client) error {
			return c.Enqueue("t", "", nil, OnConflict(Reject))
		}},
		"dequeue":      {"CANCEL", false, func(c *Client) error { _, err := c.Dequeue("t", "1"); return err }},
		"cancel group": {"CANCELGROUP", false, func(c *Client) error { _, err := c.CancelGroup(ctx, "g"); return err }},
		"reschedule":   {"RESCHEDULE", false, func(c *Client) error { return c.Reschedule(ctx, "t", "1", ProcessIn(0)) }},
		"get":          {"GET", true, func(c *Client) error { _, err := c.Get(ctx, "t", "1"); return err }},
		"every": {"SCHEDULE", true, func(c *Client) error {
			_, err := c.Every(ctx, "s", time.Hour, "t", nil)
			return err
		}},
		"run schedule":    {"SCHEDULE", false, func(c *Client) error { _, err := c.RunSchedule(ctx, "s"); return err }},
		"remove schedule": {"SCHEDULE", false, func(c *Client) error { return c.RemoveSchedule(ctx, "s") }},
	}
	for name, one := range calls {
		t.Run(name, func(t *testing.T) {
			sent := make(chan []string, 10)
			config := fakeServer(t, func(e exchange) string {
				sent <- e.words
				if e.count == 1 {
					e.conn.Close()
				}
				return "%0\r\n"
			})
			err := one.call(fakeClient(t, config))
			if one.again {
				must(t, err)
				if len(sent) != 2 {
					t.Errorf("sent %d times", len(sent))
				}
				return
			}
			if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "may have taken effect") || len(sent) != 1 {
				t.Errorf("sent %d times: %v", len(sent), err)
			}
		})
	}
}

// A second push of a job whose id the library made must not replace the first, which may be running.
func TestASecondPushKeepsTheFirst(t *testing.T) {
	sent := make(chan string, 10)
	config := fakeServer(t, func(e exchange) string {
		sent <- strings.Join(e.words, " ")
		if e.count == 1 {
			e.conn.Close()
		}
		return "$1\r\n1\r\n"
	})
	id, err := fakeClient(t, config).EnqueueContext(testContext(t), "t", "", []byte("x"))
	must(t, err)
	if first, second := <-sent, <-sent; first != "PUSH t 0 x ID "+id+" REPLACE" || second != "PUSH t 0 x ID "+id+" KEEP" {
		t.Errorf("%q, then %q", first, second)
	}
}

func TestRetryAfterIsWaitedFor(t *testing.T) {
	var times []time.Time
	config := fakeServer(t, func(e exchange) string {
		times = append(times, time.Now())
		if e.count == 1 {
			return "-OVERLOADED too much at once (try again in 300ms)\r\n"
		}
		return "$1\r\n1\r\n"
	})
	must(t, fakeClient(t, config).Enqueue("t", "1", nil))
	if len(times) != 2 || times[1].Sub(times[0]) < 300*time.Millisecond {
		t.Errorf("%v", times)
	}
}

func TestAnEnqueueManySendsAgainOnlyWhatFailed(t *testing.T) {
	var mu sync.Mutex
	sent := map[string]int{}
	config := fakeServer(t, func(e exchange) string {
		mu.Lock()
		defer mu.Unlock()
		id := e.words[5]
		sent[id]++
		if id == "b" && sent[id] == 1 {
			return "-OVERLOADED wait\r\n"
		}
		if id == "c" {
			return "-CONFLICT taken\r\n"
		}
		return "$1\r\nx\r\n"
	})
	results, err := fakeClient(t, config).EnqueueMany(testContext(t), []NewJob{{Topic: "t", ID: "a"}, {Topic: "t", ID: "b"}, {Topic: "t", ID: "c"}})
	if !errors.Is(err, ErrConflict) || results[0].ID != "a" || results[1].ID != "b" || results[2].ID != "" {
		t.Errorf("%v, %v", results, err)
	}
	if sent["a"] != 1 || sent["b"] != 2 || sent["c"] != 1 {
		t.Errorf("%v", sent)
	}
}

func TestAServerThatDoesNotAnswerIsAnError(t *testing.T) {
	config := fakeServer(t, func(e exchange) string { return "" })
	config.Timeout, config.RetryFor = 100*time.Millisecond, -1
	c := fakeClient(t, config)
	if err := c.Enqueue("t", "1", nil); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	config.Timeout = deadline
	if _, err := fakeClient(t, config).Get(ctx, "t", "1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestAServerThatIsNotThereIsAnErrorAfterRetryFor(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	listener.Close()
	c := fakeClient(t, Config{Port: port, RetryFor: 300 * time.Millisecond, Logger: testLogger(t)})
	results, err := c.EnqueueMany(testContext(t), []NewJob{{Topic: "t", ID: "1"}, {Topic: "t", ID: "2"}})
	if !errors.Is(err, ErrUnavailable) || len(results) != 2 || !errors.Is(results[1].Err, ErrUnavailable) {
		t.Errorf("%v, %v", results, err)
	}
	must(t, c.Close())
	if err := c.Enqueue("t", "1", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
}

func TestAServerThatTalksNonsenseIsAnError(t *testing.T) {
	for name, text := range map[string]string{"garbage": "what?\r\n", "too many replies": "+1\r\n+2\r\n", "too large": "$99999999999\r\n"} {
		config := fakeServer(t, func(e exchange) string { return text })
		config.RetryFor = -1
		c := fakeClient(t, config)
		_, first := c.Get(testContext(t), "t", "1")
		_, second := c.Get(testContext(t), "t", "1")
		if first == nil && second == nil && name != "too many replies" {
			t.Errorf("%s: no error", name)
		}
	}
}

// More callers than one connection has room for wait; all get their answers.
func TestTheQueueOfAConnectionIsBounded(t *testing.T) {
	release := make(chan struct{})
	config := fakeServer(t, func(e exchange) string {
		<-release
		return "_\r\n"
	})
	c := fakeClient(t, config)
	current, err := c.link.get(testContext(t))
	must(t, err)
	requests := make([]*request, maxWaiting)
	wire := newCommand("GET", "t", "1").appendTo(nil)
	for i := range requests {
		requests[i] = newRequest(wire, 1)
		must(t, current.send(testContext(t), requests[i]))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := current.send(ctx, newRequest(wire, 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one more was taken: %v", err)
	}
	close(release)
	for _, r := range requests {
		awaitEvent(t, r.done, "an answer")
		must(t, r.result())
	}
	must(t, current.send(testContext(t), newRequest(wire, 1)))
}

func TestManyCallersShareOneConnection(t *testing.T) {
	c := newServer(t, "").client()
	const callers, each = 50, 40
	var group sync.WaitGroup
	for i := 0; i < callers; i++ {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			for k := 0; k < each; k++ {
				id := fmt.Sprintf("%d-%d", i, k)
				got, err := c.EnqueueContext(context.Background(), "many", id, []byte(id), ProcessIn(time.Hour))
				if err != nil || got != id {
					t.Errorf("%s: %s, %v", id, got, err)
				}
				if job, err := c.Get(context.Background(), "many", id); err != nil || string(job.Payload) != id {
					t.Errorf("%s: %v, %v", id, job, err)
				}
			}
		}(i)
	}
	group.Wait()
}

func TestLargeBatches(t *testing.T) {
	c := newServer(t, "").client()
	random := newRandom(t)
	jobs := make([]NewJob, 20000)
	for i := range jobs {
		payload := make([]byte, random.Intn(200))
		if i%1000 == 0 {
			payload = make([]byte, 1<<20)
		}
		jobs[i] = NewJob{Topic: "large", ID: fmt.Sprint(i), Payload: payload, Options: []Option{ProcessIn(time.Hour)}}
	}
	results, err := c.EnqueueMany(testContext(t), jobs)
	must(t, err)
	for i, result := range results {
		if result.ID != fmt.Sprint(i) {
			t.Fatalf("%d: %v", i, result)
		}
	}
	for i := 0; i < 20; i++ {
		k := random.Intn(len(jobs))
		if job := mustGet(t, c, "large", fmt.Sprint(k)); job == nil || len(job.Payload) != len(jobs[k].Payload) {
			t.Errorf("%d: %v", k, job)
		}
	}
}

// newRandom prints its seed; DELAYQ_SEED repeats it.
func newRandom(t testing.TB) *mathrand.Rand {
	seed := time.Now().UnixNano()
	if text := os.Getenv("DELAYQ_SEED"); text != "" {
		_, err := fmt.Sscan(text, &seed)
		must(t, err)
	}
	t.Logf("DELAYQ_SEED=%d", seed)
	return mathrand.New(mathrand.NewSource(seed))
}

func TestTLS(t *testing.T) {
	directory := t.TempDir()
	certificate, roots := makeCertificate(t, directory)
	s := newServer(t, fmt.Sprintf("[tls]\ncertificate = %q\nkey = %q\n", certificate, filepath.Join(directory, "key.pem")))
	config := s.config()
	config.TLS = &tls.Config{RootCAs: roots}
	must(t, fakeClient(t, config).Enqueue("t", "1", []byte("x")))
	w := NewWorker(config, Wait(20*time.Second))
	handled := make(chan string, 1)
	w.Handle("t", func(ctx context.Context, job *Job) error { handled <- job.ID; return nil })
	ended := startWorker(t, w)
	awaitEvent(t, handled, "the job")
	w.Stop()
	must(t, awaitEvent(t, ended, "the end of the worker"))

	config.TLS = &tls.Config{}
	began := time.Now()
	err := fakeClient(t, config).Enqueue("t", "1", nil)
	if !errors.Is(err, ErrUnavailable) || time.Since(began) > 5*time.Second {
		t.Errorf("an unknown certificate: %v after %v", err, time.Since(began))
	}
}

func makeCertificate(t *testing.T, directory string) (file string, roots *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.ParseIP("127.0.0.1")},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	private, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	file = filepath.Join(directory, "cert.pem")
	must(t, os.WriteFile(file, text, 0o600))
	must(t, os.WriteFile(filepath.Join(directory, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), 0o600))
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return file, roots
}
