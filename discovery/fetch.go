package discovery

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// legacyParallel limits concurrent requests to a server without aggregated discovery: one per group version.
const legacyParallel = 10

// endpoint is one of the two discovery documents of an API server.
type endpoint struct {
	// path is the URL path of the document.
	path string
	// decodeGroups reads the legacy form of the document, which has groups and versions only.
	decodeGroups func([]byte) ([]group, error)
	// optional is true if a server without types before may answer 404, as extension API servers do for /api.
	optional bool
}

var (
	coreEndpoint   = endpoint{path: "/api", decodeGroups: decodeLegacyVersions, optional: true}
	groupsEndpoint = endpoint{path: "/apis", decodeGroups: decodeLegacyGroups}
)

type cachedDocument struct {
	*documentGroups
	ETag string
}

// documentGroups are the groups of a document. They are immutable.
type documentGroups struct {
	Groups []group
	// failed states that a version is not confirmed.
	failed bool
}

func newDocumentGroups(groups []group) *documentGroups {
	d := &documentGroups{Groups: groups}
	for _, g := range groups {
		d.failed = d.failed || slices.ContainsFunc(g.Versions,
			func(v groupVersion) bool { return v.Failure != "" })
	}
	return d
}

// fetch gets the document, conditionally on earlier. Failures of single group versions are part of the
// result; the error is for the whole document.
func (e endpoint) fetch(ctx context.Context, client *transport, earlier *cachedDocument) (*cachedDocument,
	error) {
	var etag string
	if earlier != nil {
		etag = earlier.ETag
	}
	r, err := client.get(ctx, e.path, acceptBoth, etag)
	switch {
	case errors.Is(err, errNotModified) && earlier != nil:
		return earlier, nil
	case apierrors.IsNotFound(err) && e.optional && (earlier == nil || len(earlier.Groups) == 0):
		return &cachedDocument{documentGroups: &documentGroups{}}, nil
	case err != nil:
		return nil, err
	}
	groups, err := e.decode(ctx, client, r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.path, err)
	}
	if earlier != nil && groups.failed {
		if r.aggregated { // these groups are shared
			own, _ := decodeAggregated(r.body) // it succeeded before
			groups = newDocumentGroups(own)
		}
		fillUnconfirmed(groups.Groups, earlier.Groups)
	}
	return &cachedDocument{groups, r.etag}, nil
}

func (e endpoint) decode(ctx context.Context, client *transport, r fetchResponse) (*documentGroups, error) {
	if !r.aggregated {
		groups, err := e.fetchLegacy(ctx, client, r.body)
		return newDocumentGroups(groups), err
	}
	return sharedDocuments.Get(sha256.Sum256(r.body), func() (*documentGroups, error) {
		groups, err := decodeAggregated(r.body)
		return newDocumentGroups(groups), err
	})
}

// fetchLegacy gets the resources of every group version that the legacy document names.
func (e endpoint) fetchLegacy(ctx context.Context, t *transport, body []byte) ([]group, error) {
	groups, err := e.decodeGroups(body)
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, legacyParallel)
	for gi := range groups {
		for vi := range groups[gi].Versions {
			// Each goroutine writes to its own version and ends with its request; Wait is below.
			wg.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				g := &groups[gi]
				e.fetchVersion(ctx, t, g.Name, &g.Versions[vi])
			})
		}
	}
	wg.Wait()
	// With a cancelled context all versions fail, which is not a result.
	return groups, ctx.Err()
}

func (e endpoint) fetchVersion(ctx context.Context, t *transport, groupName string, v *groupVersion) {
	path := e.path + "/" + v.Name
	if groupName != "" {
		path = e.path + "/" + groupName + "/" + v.Name
	}
	r, err := t.get(ctx, path, acceptLegacy, "")
	if err == nil {
		v.Resources, err = decodeLegacyResources(r.body)
	}
	if err != nil {
		v.Failure = err.Error()
	}
}
