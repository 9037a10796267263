package experiment

import (
	"context"
	"time"
)

// The sizes of the objects in a sandbox.
const (
	Small = "small" // 2 KB
	Large = "large" // 10 KB
)

// Task is what a child has to do. Which fields count depends on the experiment.
type Task struct {
	Experiment string
	// Size is the size of the objects and Objects how many there are; both also name the result.
	Size    string
	Objects int
	Subject string
	// PerType is how many objects each type has, where Objects is the number of types; and Idle is for how
	// long to watch what happens while nothing does.
	PerType int
	Idle    time.Duration
	// Kubeconfig is a file with the API server's address.
	Kubeconfig string
	// Events is how many updates are going to be made once the child is ready.
	Events int
	// Last is the key of the object that is the last one of every list.
	Last string
	// Budget is the processor time to spend on each small operation.
	Budget time.Duration
	// Folder is where caches keep what they hold, and Resumes says that they go on from what is there;
	// empty: nothing is kept.
	Folder  string
	Resumes bool
	// Command is a program with its arguments.
	Command []string
	// Serve starts a server of types in the background before Command; empty: none.
	Serve []string
	// Env has environment variables for the child, each as "name=value".
	Env []string
	// HeapProfile is the file to write what is in use in the end to; empty means none.
	HeapProfile string
	// Profile is the file to write a processor profile to; empty means none.
	Profile string
}

// Outcome is what a child found out.
type Outcome struct {
	// Metrics has the figures by metric.
	Metrics map[string]float64 `json:",omitempty"`
	// Seen has the time at which the handler saw each key, where the task has events.
	Seen map[string]time.Time `json:",omitempty"`
}

// Func does a task in a child. It calls ready each time that it waits for something to happen.
type Func func(ctx context.Context, task Task, ready func() error) (Outcome, error)
