// Deletes two spaces in a day, then keeps one of them. The address is that of a server on this machine, or DELAYQ_PORT.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/delayq/delayq/sdk/go"
	"github.com/delayq/delayq/sdk/go/example/model"
)

func main() {
	client := delayq.NewClient(delayq.RedisConfiguration{Host: "127.0.0.1", Port: os.Getenv("DELAYQ_PORT")})
	defer client.Close()

	for id, when := range map[string]delayq.Option{
		"space1": delayq.ProcessAt(time.Now().AddDate(0, 0, 1)),
		"space2": delayq.ProcessIn(24 * time.Hour),
		"space3": delayq.ProcessIn(time.Second),
	} {
		space := model.DeletedSpace{SpaceID: id}
		data, err := json.Marshal(space)
		if err != nil {
			log.Fatal(err)
		}
		if err := client.Enqueue(space.Topic(), space.SpaceID, data, when); err != nil {
			log.Fatal(err)
		}
	}
	space := model.DeletedSpace{}
	what, err := client.Dequeue(space.Topic(), "space2")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("space2:", what)
}
