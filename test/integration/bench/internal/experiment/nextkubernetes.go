//go:build nextkubernetes

package experiment

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"
)

// controller-runtime cannot be linked with the next client-go.
var (
	errNoRuntime = errors.New("controller-runtime does not support this version of client-go")

	runtimeAdders              map[string]func(*fleet) func(*rest.Config, []Type) error
	manage, measureControllers = noExperiment, noExperiment
)

func newControllerRuntime(Options) (Cache, error) { return nil, errNoRuntime }

func noExperiment(context.Context, Task, func() error) (Outcome, error) {
	return Outcome{}, errNoRuntime
}
