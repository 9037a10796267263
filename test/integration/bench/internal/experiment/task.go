package experiment

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Sizes of Certificates in a sandbox, and Pods of a synthetic server.
const (
	Small = "small" // 2 KB
	Large = "large" // 10 KB
	Pods  = "pods"  // 6 KB
)

// Task is the task of a child. The experiment determines which fields apply.
type Task struct {
	Experiment string
	// Size and Objects are the size and the number of the objects. They also name the result.
	Size    string
	Objects int
	Subject string
	// PerType is the number of objects per type if Objects counts types or clusters. Idle is the duration of
	// the idle measurement.
	PerType int
	Idle    time.Duration
	// Kubeconfig is the path of a kubeconfig.
	Kubeconfig string
	// Events is the number of updates after the child is ready.
	Events int
	// Last is the key of the last object in every list.
	Last string
	// Budget is the CPU time for each small operation.
	Budget time.Duration
	// Folder is the folder of persisted caches; empty disables persistence. Resumes means that the caches
	// resume from it.
	Folder  string
	Resumes bool
	// Command is a program with its arguments.
	Command []string
	// Serve is a cache server that runs until Command ends. It is optional.
	Serve []string
	// Env has environment variables for the child as "name=value".
	Env []string
	// Program is the path of the child's program. Default: that of its parent.
	Program string
	// Profile is the start of the paths of profiles. Empty means none.
	Profile string
}

// Outcome is the result of a child.
type Outcome struct {
	// Metrics has the figures by metric.
	Metrics map[string]float64 `json:",omitempty"`
	// Seen has the time of the handler's first call for each key, for tasks with events.
	Seen map[string]time.Time `json:",omitempty"`
}

// Func runs a task in a child. It calls ready each time before it waits for an external change.
type Func func(ctx context.Context, task Task, ready func() error) (Outcome, error)

// certificates is the measured type.
var certificates = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1",
	Resource: "certificates"}

const (
	certificateKind = "Certificate"
	podKind         = "Pod"
)

// config returns the configuration of a child's clients, without a client-side rate limit.
func config(task Task) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", task.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	return config, nil
}

func newCache(task Task, handler Handler, onSeen func(string)) Cache {
	config, err := config(task)
	check(err)
	options := Options{Config: config, GVR: certificates, Kind: certificateKind, Handler: handler,
		OnSeen: onSeen}
	if task.Size == Pods {
		options.GVR, options.Kind = schema.GroupVersionResource{Version: "v1", Resource: "pods"}, podKind
	}
	cache, err := newSubject(task.Subject, options)
	check(err)
	return cache
}
