package dump

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/cli/caches"
)

const (
	// columnsTimeout bounds the wait for CRDs. It comes on top of --timeout, which may have been used
	// up by another type than those that are printed.
	columnsTimeout = 5 * time.Second
	// columnsParallel bounds the requests for CRDs at a time.
	columnsParallel = 10
)

// columns returns the printer columns of each type. There are none for types without a CRD, whose tables
// show name and age; where a CRD cannot be read that is so as well, and said on stderr.
func (o *options) columns(ctx context.Context, client dynamic.Interface, types []caches.Cache) [][]crd.Column {
	ctx, cancel := context.WithTimeout(ctx, columnsTimeout)
	defer cancel()
	columns, errs := make([][]crd.Column, len(types)), make([]error, len(types))
	slots := make(chan struct{}, columnsParallel)
	var wg sync.WaitGroup
	for i, t := range types {
		// Each goroutine writes to its own place and ends with its request, which ends with ctx.
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			columns[i], errs[i] = fetchColumns(ctx, client, t.Resource)
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			fmt.Fprintf(o.ErrOut, "warning: %s is shown with name and age alone, for its columns cannot be read: %s\n",
				types[i].Resource, strings.Join(strings.Fields(err.Error()), " "))
		}
	}
	return columns
}

func fetchColumns(ctx context.Context, client dynamic.Interface, r discovery.Resource) ([]crd.Column, error) {
	if !strings.Contains(r.GVR.Group, ".") {
		return nil, nil // the group of a CRD has a dot
	}
	definition, err := crd.Fetch(ctx, client, r.GVR.GroupResource())
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	version, _ := definition.Version(r.GVR.Version)
	return version.Columns, nil
}
