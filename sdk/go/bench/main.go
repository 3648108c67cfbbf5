// Measures the library: what it stores in a second, compared with go-redis that pipelines RPUSH of the same size to a Redis;
// and how close a worker comes to the ideal rate.
//
//	DELAYQ=path/of/delayq go run . [--smoke]
//
// Both servers are started here, with their data in a temporary directory. The rounds alternate; the medians are compared.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/sdk/go"
)

const (
	payloadBytes = 100
	batch        = 1000
	producers    = 4
	singles      = 512 // goroutines that enqueue one job at a time
	concurrency  = 50
	handlerTime  = 5 * time.Millisecond
	enqueueBar   = 0.5
	workerBar    = 0.9
)

func main() {
	smoke := flag.Bool("smoke", false, "end in seconds")
	flag.Parse()
	rounds, length, jobs := 7, 2*time.Second, 10000
	if *smoke {
		rounds, length, jobs = 1, 200*time.Millisecond, 1000
	}
	folder, err := os.MkdirTemp("", "delayq-go-bench-")
	check(err)
	defer os.RemoveAll(folder)
	port, stop := startDelayq(folder)
	defer stop()
	redisPort, stopRedis := startRedis(folder)
	defer stopRedis()
	rival := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + redisPort})
	defer rival.Close()
	fmt.Printf("commit %s, %s, %d processors\n", commit(), runtime.Version(), runtime.NumCPU())

	var ours, one, theirs, worked, slept []float64
	for i := 0; i < rounds; i++ {
		theirs = append(theirs, measureRedis(rival, length))
		ours = append(ours, measureBatches(port, length))
		one = append(one, measureSingles(port, length))
		worked = append(worked, measureWorker(port, jobs))
		slept = append(slept, measureSleep(jobs))
	}
	ideal := float64(concurrency) / handlerTime.Seconds()
	fmt.Printf("go-redis, RPUSH of %d bytes, pipelines of %d, %d goroutines: %.0f/s\n", payloadBytes, batch, producers, median(theirs))
	fmt.Printf("EnqueueMany of %d, %d goroutines, on disk: %.0f/s, %.2fx (bar %.1fx)\n", batch, producers, median(ours), median(ours)/median(theirs), enqueueBar)
	fmt.Printf("Enqueue by %d goroutines, on disk: %.0f/s, %.2fx\n", singles, median(one), median(one)/median(theirs))
	fmt.Printf("worker, %d jobs, concurrency %d, handlers of %v: %.0f/s, %.2fx of %.0f/s (bar %.1fx)\n", jobs, concurrency, handlerTime,
		median(worked), median(worked)/ideal, ideal, workerBar)
	fmt.Printf("goroutines that only sleep: %.0f/s; the worker has %.2fx of it\n", median(slept), median(worked)/median(slept))
	if !*smoke && (median(ours)/median(theirs) < enqueueBar || median(worked)/ideal < workerBar) {
		fmt.Println("a bar is missed")
		os.Exit(1)
	}
}

func measureRedis(c *redis.Client, length time.Duration) float64 {
	payload := make([]byte, payloadBytes)
	ctx := context.Background()
	rate := inParallel(producers, length, func(int) int {
		pipe := c.Pipeline()
		for i := 0; i < batch; i++ {
			pipe.RPush(ctx, "list", payload)
		}
		_, err := pipe.Exec(ctx)
		check(err)
		return batch
	})
	check(c.Del(ctx, "list").Err())
	return rate
}

func measureBatches(port string, length time.Duration) float64 {
	c := delayq.NewClient(delayq.Config{Port: port})
	defer c.Close()
	payload := make([]byte, payloadBytes)
	options := []delayq.Option{delayq.ProcessIn(time.Hour)}
	defer purge(port)
	return inParallel(producers, length, func(int) int {
		jobs := make([]delayq.NewJob, batch)
		for i := range jobs {
			jobs[i] = delayq.NewJob{Topic: "list", Payload: payload, Options: options}
		}
		_, err := c.EnqueueMany(context.Background(), jobs)
		check(err)
		return batch
	})
}

func measureSingles(port string, length time.Duration) float64 {
	c := delayq.NewClient(delayq.Config{Port: port})
	defer c.Close()
	payload := make([]byte, payloadBytes)
	options := []delayq.Option{delayq.ProcessIn(time.Hour)}
	defer purge(port)
	return inParallel(singles, length, func(int) int {
		check(c.Enqueue("list", "", payload, options...))
		return 1
	})
}

func inParallel(count int, length time.Duration, work func(number int) int) float64 {
	var total atomic.Int64
	var group sync.WaitGroup
	began := time.Now()
	for i := 0; i < count; i++ {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			for time.Since(began) < length {
				total.Add(int64(work(i)))
			}
		}(i)
	}
	group.Wait()
	return float64(total.Load()) / time.Since(began).Seconds()
}

func measureWorker(port string, count int) float64 {
	c := delayq.NewClient(delayq.Config{Port: port})
	defer c.Close()
	jobs := make([]delayq.NewJob, count)
	for i := range jobs {
		jobs[i] = delayq.NewJob{Topic: "work", Payload: make([]byte, payloadBytes)}
	}
	_, err := c.EnqueueMany(context.Background(), jobs)
	check(err)
	w := delayq.NewWorker(delayq.Config{Port: port}, delayq.Concurrency(concurrency))
	var left atomic.Int64
	left.Store(int64(count))
	w.Handle("work", func(ctx context.Context, job *delayq.Job) error {
		time.Sleep(handlerTime)
		if left.Add(-1) == 0 {
			w.Stop()
		}
		return nil
	})
	began := time.Now()
	check(w.Run(context.Background())) // all results have reached the server
	rate := float64(count) / time.Since(began).Seconds()
	purge(port)
	return rate
}

// measureSleep is the same without a queue: what this machine makes of the ideal rate just now.
func measureSleep(count int) float64 {
	began := time.Now()
	var group sync.WaitGroup
	for i := 0; i < concurrency; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for n := 0; n < count/concurrency; n++ {
				time.Sleep(handlerTime)
			}
		}()
	}
	group.Wait()
	return float64(count) / time.Since(began).Seconds()
}

// purge removes all jobs, so that each round begins with an empty server.
func purge(port string) {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, ReadTimeout: time.Minute})
	defer c.Close()
	for _, topic := range []string{"list", "work"} {
		check(c.Do(context.Background(), "PURGE", topic).Err())
	}
}

// ---- servers

func startDelayq(folder string) (port string, stop func()) {
	program := os.Getenv("DELAYQ")
	if program == "" {
		program = "../../../build/release/delayq"
	}
	command := exec.Command(program, "serve", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", filepath.Join(folder, "delayq"), "--log-level", "warn")
	out, err := command.StdoutPipe()
	check(err)
	stop = start(command)
	pattern := regexp.MustCompile(`redis-cli -p (\d+) `)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if found := pattern.FindStringSubmatch(lines.Text()); found != nil {
			go func() {
				for lines.Scan() {
				}
			}()
			return found[1], stop
		}
	}
	log.Fatal("delayq did not start")
	return "", nil
}

func startRedis(folder string) (port string, stop func()) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	check(listener.Close())
	stop = start(exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "no"))
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
	defer c.Close()
	for limit := time.Now().Add(10 * time.Second); c.Ping(context.Background()).Err() != nil; {
		if time.Now().After(limit) {
			log.Fatal("redis-server did not start")
		}
	}
	return port, stop
}

func start(command *exec.Cmd) (stop func()) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is that of the thread
	check(command.Start())
	return func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}
}

func commit() string {
	out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func median(values []float64) float64 {
	sorted := append([]float64(nil), values...)
	sort.Float64s(sorted)
	return sorted[len(sorted)/2]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
