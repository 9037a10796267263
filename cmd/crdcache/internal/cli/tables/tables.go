// Package tables finds out what the columns of types are: the CRD says it, or the API server prints the cells.
package tables

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/output"
	"github.com/crdcache/crdcache/discovery"
)

const (
	// timeout bounds the wait for all columns. It comes on top of --timeout, which may have been used up by
	// another type than those that are printed.
	timeout = 30 * time.Second
	// parallel bounds the requests at a time.
	parallel = 10
)

// Loader gets the rows of types.
type Loader struct {
	client    dynamic.Interface
	rest      rest.Interface // nil when the server is not asked to print
	namespace string
	selectors metav1.ListOptions
	errOut    io.Writer
}

// NewLoader returns a Loader for a server. Namespace (empty: all) and selectors are those of the objects that will
// be shown; warnings go to errOut.
func NewLoader(config *rest.Config, httpClient *http.Client, client dynamic.Interface, namespace string, selectors metav1.ListOptions, errOut io.Writer) (*Loader, error) {
	plain, err := newClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return &Loader{client: client, rest: plain, namespace: namespace, selectors: selectors, errOut: errOut}, nil
}

// NewDefinitionLoader returns a Loader that knows the columns of CRDs alone, for objects that the server is not
// asked to print.
func NewDefinitionLoader(client dynamic.Interface, errOut io.Writer) *Loader {
	return &Loader{client: client, errOut: errOut}
}

// Load returns the rows of each type. A type whose columns cannot be had shows name and age, which is said.
func (l *Loader) Load(ctx context.Context, types []discovery.Resource) []output.Rows {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	rows, errs := make([]output.Rows, len(types)), make([]error, len(types))
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, r := range types {
		// Each goroutine writes to its own place and ends with its requests, which end with ctx.
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			rows[i], errs[i] = l.load(ctx, r)
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			fmt.Fprintf(l.errOut, "warning: %s is shown with name and age alone, for its columns cannot be read: %s\n",
				types[i], strings.Join(strings.Fields(err.Error()), " "))
		}
		if rows[i] == nil {
			rows[i] = output.NewRows(nil)
		}
	}
	return rows
}

func (l *Loader) load(ctx context.Context, r discovery.Resource) (output.Rows, error) {
	rows, err := crdRows(ctx, l.client, r)
	if rows != nil || err != nil || l.rest == nil {
		return rows, err
	}
	return serverRows(ctx, l.rest, r, l.namespace, l.selectors)
}
