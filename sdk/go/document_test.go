package delayq

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// fragment is the program around a snippet that is not one itself.
const fragment = `package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/delayq/delayq/sdk/go"
)

var (
	_ = context.Background
	_ = tls.VersionTLS12
	_ = json.Marshal
	_ = errors.Is
	_ = log.Print
	_ = os.Exit
	_ = signal.Notify
	_ = syscall.SIGTERM
	_ = time.Now
)

func snippet(ctx context.Context, client *delayq.Client, worker *delayq.Worker) {
	{
%s
	}
}

func main() {
	client := delayq.NewClient(delayq.Config{})
	_ = client.Enqueue("mail", "8", nil, delayq.ProcessIn(time.Hour))
	worker := delayq.NewWorker(delayq.Config{})
	worker.Handle("order", func(ctx context.Context, job *delayq.Job) error { return nil })
	snippet(context.Background(), client, worker)
	fmt.Println("snippet: the end")
}
`

// Every snippet of the README compiles and runs against a real server.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	must(t, err)
	found := goBlock.FindAllStringSubmatch(string(text), -1)
	if len(found) < 7 {
		t.Fatalf("%d snippets", len(found))
	}
	s := newServer(t, "")
	folder := t.TempDir()
	here, err := filepath.Abs(".")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte("module snippets\n\ngo 1.19\n\n"+
		"require github.com/delayq/delayq/sdk/go v0.0.0\n\nreplace github.com/delayq/delayq/sdk/go => "+here+"\n"), 0o600))
	for i, match := range found {
		program, until := match[1], ""
		switch {
		case strings.HasPrefix(program, "package"):
			until = "closing order:1"
		case strings.Contains(program, "Run(ctx)"):
			until = "running"
			program = strings.Replace(fmt.Sprintf(fragment, program), "	snippet(", "	fmt.Println(\"running\")\n	snippet(", 1)
		default:
			program = fmt.Sprintf(fragment, program)
		}
		program = strings.ReplaceAll(program, `"queue.internal", Port: "9278"`, `"127.0.0.1"`)
		program = strings.ReplaceAll(program, "delayq.Config{", `delayq.Config{Port: "`+s.port+`",`)
		program = strings.ReplaceAll(program, `Port: "`+s.port+`",}`, `Port: "`+s.port+`"}`)
		t.Run(fmt.Sprint(i+1), func(t *testing.T) { runProgram(t, folder, program, until) })
	}
}

// runProgram runs it until it ends, or until it has printed this line; then it gets SIGTERM.
func runProgram(t *testing.T, folder, program, until string) {
	must(t, os.WriteFile(filepath.Join(folder, "main.go"), []byte(program), 0o600))
	binary := filepath.Join(t.TempDir(), "snippet")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir = folder
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, program)
	}
	command := exec.Command(binary)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	lines, seen := make(chan string, 100), false
	go func() {
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			lines <- scanner.Text()
		}
		close(lines)
	}()
	for limit, isOver := time.After(deadline), false; !isOver; {
		select {
		case line, more := <-lines:
			isOver = !more
			if strings.Contains(line, "order:2") {
				t.Error("a cancelled job was handed over")
			}
			if until != "" && strings.Contains(line, until) {
				seen = true
				must(t, command.Process.Signal(syscall.SIGTERM))
			}
		case <-limit:
			_ = command.Process.Kill()
			t.Fatal("it does not end")
		}
	}
	err = command.Wait()
	if until == "" {
		must(t, err)
	} else if !seen {
		t.Errorf("it did not print %q: %v", until, err)
	}
}

// The programs in example, which are in the shape of the library over Redis.
func TestExamples(t *testing.T) {
	s := newServer(t, "")
	folder := t.TempDir()
	build := exec.Command("go", "build", "-o", folder, "./example/...")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	environment := append(os.Environ(), "DELAYQ_PORT="+s.port)
	client := exec.Command(filepath.Join(folder, "client"))
	client.Env = environment
	if out, err := client.CombinedOutput(); err != nil || string(out) != "space2: cancelled\n" {
		t.Fatalf("%v\n%s", err, out)
	}
	serving := exec.Command(filepath.Join(folder, "server"))
	serving.Env = environment
	serving.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := serving.StdoutPipe()
	must(t, err)
	must(t, serving.Start())
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(out).ReadString('\n')
		line <- text
	}()
	if text := awaitEvent(t, line, "a line of the server"); text != "deleted: space3\n" {
		t.Errorf("%q", text)
	}
	must(t, serving.Process.Signal(syscall.SIGTERM))
	must(t, serving.Wait())
	c := s.client()
	if one, three := mustGet(t, c, "deleted_space", "space1"), mustGet(t, c, "deleted_space", "space3"); one.State != "delayed" || three.State != "done" {
		t.Errorf("%+v, %+v", one, three)
	}
}
