// Package model has the job that the examples client and server share.
package model

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/delayq/delayq/sdk/go"
)

// DeletedSpace is a space that its user has deleted. It is really deleted when its job is due.
type DeletedSpace struct {
	SpaceID string
}

// Topic is where the jobs of deleted spaces wait.
func (d *DeletedSpace) Topic() string { return "deleted_space" }

// Execute deletes the space.
func (d *DeletedSpace) Execute(ctx context.Context, job *delayq.Job) error {
	var space DeletedSpace
	if err := json.Unmarshal(job.Boday, &space); err != nil {
		return delayq.Dead("the payload is malformed: " + err.Error()) // another attempt would not help
	}
	fmt.Println("deleted:", space.SpaceID)
	return nil
}
