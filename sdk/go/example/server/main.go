// Deletes the spaces whose time has come. SIGINT or SIGTERM stops it.
package main

import (
	"context"
	"log"
	"os"

	"github.com/delayq/delayq/sdk/go"
	"github.com/delayq/delayq/sdk/go/example/model"
)

func main() {
	server := delayq.NewServer(delayq.RedisConfiguration{Host: "127.0.0.1", Port: os.Getenv("DELAYQ_PORT")})
	space := model.DeletedSpace{}
	server.HandlerFunc(space.Topic(), &space)
	if err := server.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
