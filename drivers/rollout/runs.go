package rollout

import (
	"context"
	"errors"
	"time"

	"github.com/fabricctl/fabricctl/model/intent"
)

// Status says where a run stands.
type Status string

const (
	Running    Status = "running"    // its lease is held
	Unfinished Status = "unfinished" // it died, or ended with devices that need Resume, Rollback or hands
	Finished   Status = "finished"   // every device is as the last attempt wished
)

// Summary is one run in a list.
type Summary struct {
	ID      string          `json:"id"`
	Fabric  string          `json:"fabric"`
	Status  Status          `json:"status"`
	Started time.Time       `json:"started"`
	Devices map[Outcome]int `json:"devices,omitempty"`
	Error   string          `json:"error,omitempty"` // the journal cannot be read
}

// History is a run with its plan and all its attempts, oldest first.
type History struct {
	Summary
	Plan     *Plan  `json:"plan"`
	Attempts []*Run `json:"attempts"`
}

var errInterim = errors.New("in the works")

func (e *Engine) Plan(ctx context.Context, net *intent.Net, o PlanOptions) (*Plan, error) {
	return nil, errInterim
}
func (e *Engine) Apply(ctx context.Context, p *Plan, o ApplyOptions) (*Run, error) {
	return nil, errInterim
}
func (e *Engine) Resume(ctx context.Context, id string) (*Run, error)   { return nil, errInterim }
func (e *Engine) Rollback(ctx context.Context, id string) (*Run, error) { return nil, errInterim }

func Runs(stateDir string) ([]Summary, error)    { return nil, errInterim }
func Show(stateDir, id string) (*History, error) { return nil, errInterim }

func (p *Plan) check() error { return nil }
