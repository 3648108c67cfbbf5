package delayq

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// The bounds of one reply. A body has at most 64 MiB, and a pop that has 8 MiB takes no further job.
const (
	maxReplyBytes = 256 << 20
	maxReplyItems = 1 << 20
	maxReplyDepth = 8
	maxLineBytes  = 64 << 10
	firstBytes    = 1 << 20 // of a long text; more memory is taken as its bytes arrive
)

// value is one reply. Which fields have a meaning depends on the kind: '+' and '$' have data, ':' has number, '*' and '%' have
// items (a map: name, value, name, value), '-' has data, '_' is null.
type value struct {
	kind   byte
	number int64
	data   []byte
	items  []value
}

func (v value) text() string { return string(v.data) }

func (v value) isNull() bool { return v.kind == '_' }

// failure returns the error that the reply is, or nil.
func (v value) failure() error {
	if v.kind == '-' {
		return parseError(v.text())
	}
	return nil
}

type replyReader struct {
	in     *bufio.Reader
	budget int // bytes and items that the reply may still have
}

type protocolError string

func (p protocolError) Error() string { return "protocol error: " + string(p) }

func newReplyReader(in io.Reader) *replyReader {
	return &replyReader{in: bufio.NewReaderSize(in, maxLineBytes)}
}

func (r *replyReader) read() (value, error) {
	r.budget = maxReplyBytes
	return r.readNested(0)
}

func (r *replyReader) readNested(depth int) (value, error) {
	line, err := r.line()
	if err != nil {
		return value{}, err
	}
	if len(line) == 0 {
		return value{}, protocolError("an empty line")
	}
	reply := value{kind: line[0]}
	rest := line[1:]
	switch reply.kind {
	case '+', '-':
		reply.data = append([]byte(nil), rest...)
	case ':':
		reply.number, err = parseNumber(rest)
	case '_':
	case '#':
		reply.kind = ':'
		if len(rest) == 1 && rest[0] == 't' {
			reply.number = 1
		}
	case ',':
		reply.kind = '+'
		reply.data = append([]byte(nil), rest...)
	case '$', '!':
		err = r.readText(rest, &reply)
	case '*', '%', '~', '>':
		err = r.readItems(rest, &reply, depth)
	default:
		err = protocolError(fmt.Sprintf("unknown type %q", reply.kind))
	}
	return reply, err
}

func (r *replyReader) line() ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		return nil, protocolError("a line is too long")
	}
	if err != nil {
		return nil, err
	}
	if len(line) < 2 || line[len(line)-2] != '\r' {
		return nil, protocolError("a line without an end")
	}
	if r.budget -= len(line); r.budget < 0 {
		return nil, protocolError("a reply is too large")
	}
	return line[:len(line)-2], nil
}

func parseNumber(text []byte) (int64, error) {
	number, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, protocolError(fmt.Sprintf("%.40q is not a number", text))
	}
	return number, nil
}

func (r *replyReader) readText(length []byte, reply *value) error {
	count, err := parseNumber(length)
	if err != nil {
		return err
	}
	if count == -1 {
		reply.kind = '_'
		return nil
	}
	if count < 0 || count > int64(r.budget) {
		return protocolError("a text is too long")
	}
	r.budget -= int(count)
	if reply.kind == '!' {
		reply.kind = '-'
	}
	if count+2 <= firstBytes {
		reply.data = make([]byte, count+2)
		_, err = io.ReadFull(r.in, reply.data)
	} else {
		var grown bytes.Buffer
		_, err = io.CopyN(&grown, r.in, count+2)
		reply.data = grown.Bytes()
	}
	if err != nil {
		return midReply(err)
	}
	if reply.data[count] != '\r' || reply.data[count+1] != '\n' {
		return protocolError("a text without an end")
	}
	reply.data = reply.data[:count:count]
	return nil
}

func (r *replyReader) readItems(length []byte, reply *value, depth int) error {
	count, err := parseNumber(length)
	if err != nil {
		return err
	}
	if count == -1 {
		reply.kind = '_'
		return nil
	}
	isMap := reply.kind == '%'
	if isMap {
		count *= 2
	} else {
		reply.kind = '*'
	}
	if count < 0 || count > maxReplyItems || depth >= maxReplyDepth {
		return protocolError("too many items")
	}
	reply.items = make([]value, 0, least(int(count), 1024))
	for i := int64(0); i < count; i++ {
		item, err := r.readNested(depth + 1)
		if err != nil {
			return midReply(err)
		}
		reply.items = append(reply.items, item)
	}
	return nil
}

func midReply(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func least(a, b int) int {
	if a < b {
		return a
	}
	return b
}

// fields is a reply that is a map.
type fields map[string]value

func readFields(reply value) fields {
	all := make(fields, len(reply.items)/2)
	for i := 0; i+1 < len(reply.items); i += 2 {
		all[reply.items[i].text()] = reply.items[i+1]
	}
	return all
}

func (f fields) text(name string) string  { return f[name].text() }
func (f fields) number(name string) int64 { return f[name].number }

// moment returns the zero time if there is no such field.
func (f fields) moment(name string) time.Time {
	if found, ok := f[name]; ok {
		return fromMillis(found.number)
	}
	return time.Time{}
}

func (f fields) duration(name string) time.Duration {
	found, err := parseDuration(f.text(name))
	if err != nil {
		return 0
	}
	return found
}

func (f fields) headers() map[string]string { return readHeaders(f["headers"]) }

func readHeaders(reply value) map[string]string {
	headers := make(map[string]string, len(reply.items)/2)
	for i := 0; i+1 < len(reply.items); i += 2 {
		headers[reply.items[i].text()] = reply.items[i+1].text()
	}
	return headers
}

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms) }

// command collects the words of one command. It can be used again after reset.
type command struct {
	words []byte
	count int
}

func newCommand(words ...string) *command {
	c := &command{}
	for _, word := range words {
		c.text(word)
	}
	return c
}

func (c *command) reset() { c.words, c.count = c.words[:0], 0 }

func (c *command) text(word string) {
	c.length(len(word))
	c.words = append(append(c.words, word...), '\r', '\n')
}

func (c *command) bytes(word []byte) {
	c.length(len(word))
	c.words = append(append(c.words, word...), '\r', '\n')
}

func (c *command) length(n int) {
	c.count++
	c.words = append(c.words, '$')
	c.words = strconv.AppendInt(c.words, int64(n), 10)
	c.words = append(c.words, '\r', '\n')
}

func (c *command) number(n int64) {
	var digits [20]byte
	c.bytes(strconv.AppendInt(digits[:0], n, 10))
}

// duration writes whole milliseconds, rounded up so that nothing is early.
func (c *command) duration(d time.Duration) {
	var digits [24]byte
	c.bytes(append(strconv.AppendInt(digits[:0], ceilMillis(d), 10), 'm', 's'))
}

// moment writes Unix seconds with three decimals, rounded up so that nothing is early.
func (c *command) moment(at time.Time) {
	ms := at.UnixMilli()
	if at.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	sign := ""
	if ms < 0 {
		sign, ms = "-", -ms
	}
	c.text(fmt.Sprintf("%s%d.%03d", sign, ms/1000, ms%1000))
}

// appendTo appends the command as it is on the wire.
func (c *command) appendTo(wire []byte) []byte {
	wire = append(wire, '*')
	wire = strconv.AppendInt(wire, int64(c.count), 10)
	wire = append(wire, '\r', '\n')
	return append(wire, c.words...)
}

func ceilMillis(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > 0 && d%time.Millisecond != 0 {
		ms++
	}
	return ms
}

var durationUnits = []struct {
	name  string
	scale time.Duration
}{{"ms", time.Millisecond}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}

// parseDuration reads a duration as the server writes it: "1h30m", "1.5s", "250ms". What does not fit into a time.Duration is
// the longest one.
func parseDuration(text string) (time.Duration, error) {
	total := 0.0
	for rest := text; ; {
		digits := strings.TrimLeft(rest, "0123456789.")
		number, err := strconv.ParseFloat(rest[:len(rest)-len(digits)], 64)
		if err != nil {
			return 0, fmt.Errorf("%.40q is not a duration", text)
		}
		scale := time.Duration(0)
		for _, unit := range durationUnits {
			if strings.HasPrefix(digits, unit.name) {
				rest, scale = digits[len(unit.name):], unit.scale
				break
			}
		}
		if scale == 0 {
			return 0, fmt.Errorf("%.40q is not a duration", text)
		}
		total += number * float64(scale)
		if rest == "" {
			break
		}
	}
	if total >= math.MaxInt64 {
		return math.MaxInt64, nil
	}
	return time.Duration(math.Round(total)), nil
}
