// asynq on the same Redis: whole lives a second, with three servers.  go run asynq.go PORT JOBS
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

const producers, servers, workers = 50, 3, 70

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	jobs, err := strconv.Atoi(os.Args[2])
	check(err)
	redis := asynq.RedisClientOpt{Addr: "127.0.0.1:" + os.Args[1], PoolSize: 100}
	var done atomic.Int64
	over := make(chan struct{})
	handle := asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		if done.Add(1) == int64(jobs) {
			close(over)
		}
		return nil
	})
	for i := 0; i < servers; i++ {
		server := asynq.NewServer(redis, asynq.Config{Concurrency: workers, LogLevel: asynq.FatalLevel})
		check(server.Start(handle))
	}
	client := asynq.NewClient(redis)
	body := []byte(strings.Repeat("b", 128))
	begin := time.Now()
	var producing sync.WaitGroup
	for i := 0; i < producers; i++ {
		share := jobs / producers
		if i < jobs%producers {
			share++
		}
		producing.Add(1)
		go func() {
			defer producing.Done()
			for n := 0; n < share; n++ {
				_, err := client.Enqueue(asynq.NewTask("job", body))
				check(err)
			}
		}()
	}
	producing.Wait()
	<-over
	fmt.Println(float64(jobs) / time.Since(begin).Seconds())
}
