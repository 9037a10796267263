package session

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// definitionTimeout bounds the wait for the CRD that a query is compared with.
const definitionTimeout = 5 * time.Second

// Columns are the paths in the value of a flag.
type Columns struct {
	Flag  string
	Paths []string
}

// WarnOfMismatches warns about conditions and paths that do not match the schema of the type, because a
// misspelled field matches nothing and causes no error. It ignores types without a readable CRD.
func (t *Target) WarnOfMismatches(ctx context.Context, client dynamic.Interface, r discovery.Resource,
	q query.Query, columns ...Columns) {
	paths := 0
	for _, c := range columns {
		paths += len(c.Paths)
	}
	// CRD groups contain a dot.
	if !query.UsesWhere(q) && paths == 0 || !strings.Contains(r.GVR.Group, ".") {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, definitionTimeout)
	defer cancel()
	definition, err := t.Definitions(client)(ctx, r.GVR.GroupResource())
	if err != nil {
		return
	}
	warn := func(flag string, found []indexers.Diagnostic) {
		for _, d := range found {
			t.Warnf("--%s: %s; %s", flag, d.Message, d.Hint)
		}
	}
	warn("where", query.Check(q, definition, r.GVR.Version))
	for _, c := range columns {
		for _, path := range c.Paths {
			warn(c.Flag, indexers.CheckColumn(path, definition, r.GVR.Version))
		}
	}
}

type definition struct {
	*crd.Definition
	err error
}

// Definitions returns a function that fetches each CRD at most once.
func (t *Target) Definitions(client dynamic.Interface) print.Definitions {
	return func(ctx context.Context, resource schema.GroupResource) (*crd.Definition, error) {
		if found, ok := t.fetchedCRDs.Load(resource); ok {
			return found.(definition).Definition, found.(definition).err
		}
		fetched, err := crd.Fetch(ctx, client, resource)
		if err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			t.fetchedCRDs.Store(resource, definition{fetched, err})
		}
		return fetched, err
	}
}
