package live

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/readapi"
)

// coalescedChecks coalesces consistency checks against the API server. A caller that arrives during a check
// joins the next one, because the running check may predate its request.
type coalescedChecks struct {
	timeout time.Duration
	mu      struct {
		sync.Mutex
		running bool
		next    *freshnessCheck
	}
}

// freshnessCheck is one check. err is set when done is closed.
type freshnessCheck struct {
	done chan struct{}
	err  error
}

// waitUntilFresh blocks until the cache has reached the API server's state at the time of the call.
func (c *collection) waitUntilFresh(ctx context.Context) error {
	s := &c.checks
	s.mu.Lock()
	if s.mu.next == nil {
		s.mu.next = &freshnessCheck{done: make(chan struct{})}
	}
	check := s.mu.next
	if !s.mu.running {
		s.mu.running = true
		go c.runChecks() // ends after the last requested check; each check has a timeout
	}
	s.mu.Unlock()
	select {
	case <-check.done:
		return check.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitForVersion blocks until the cache has reached a version, or a freshness check has ended. A version that
// the API server has not reached either is not an error here: the handler reports it.
func (c *collection) waitForVersion(ctx context.Context, version uint64) error {
	err := c.waitUntilFresh(ctx)
	if c.ResourceVersion() >= version {
		return nil
	}
	return err
}

// waitForWatchVersion blocks until a watch can continue from a version that the cache has not reached. If a
// fresh cache has not reached it, a restored backup has lost the version, and the client must list again. An
// API server would accept the watch and send nothing.
func (c *collection) waitForWatchVersion(ctx context.Context, version uint64) error {
	if err := c.waitUntilFresh(ctx); err != nil || c.ResourceVersion() >= version {
		return nil // after an error the watch waits for the version, as on an API server
	}
	return apierrors.NewResourceExpired(fmt.Sprintf("the API server has not reached resource version %d: it was restored from an older backup", version))
}

func (c *collection) runChecks() {
	s := &c.checks
	for {
		s.mu.Lock()
		check := s.mu.next
		s.mu.next = nil
		s.mu.running = check != nil
		s.mu.Unlock()
		if check == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
		check.err = c.compare(ctx)
		cancel()
		close(check.done)
	}
}

type listPage struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
	Items []item `json:"items"`
}

type item struct {
	Metadata struct {
		Name            string `json:"name"`
		Namespace       string `json:"namespace"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
}

const (
	maxCompared    = 500 // objects
	acceptPartials = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
	acceptPartial  = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
)

// compare reads the resource version of the API server, and blocks until the cache has reached it.
//
// If the cache was ahead of the API server, the API server was restored from a backup. The cache is fresh
// after its informer has listed the type again, which begins another epoch.
//
// Resource versions count the changes of all types, and an idle watch receives the versions of other types
// only once a minute, in bookmarks. A cache that lags can therefore be complete. For a small number of
// objects, compare checks this by comparing their versions. Otherwise it watches from the version of the
// cache until a bookmark confirms the version, and blocks until the cache has the changes of that watch.
func (c *collection) compare(ctx context.Context) error {
	before := c.informer.History()
	body, err := c.server.upstream.get(ctx, c.listPath(), url.Values{"limit": {strconv.Itoa(maxCompared)}},
		acceptPartials)
	if err != nil {
		return err
	}
	defer body.Close()
	var list listPage
	if err := json.NewDecoder(body).Decode(&list); err != nil {
		return unreachableError(err)
	}
	present, err := strconv.ParseUint(list.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if before.ResourceVersion > present {
		return c.awaitEpoch(ctx, before)
	}
	begin := c.informer.History()
	if list.Metadata.Continue != "" && begin.ResourceVersion < present {
		return c.probe(ctx, begin, present)
	}
	for {
		h := c.informer.History()
		if h.ResourceVersion >= present {
			return nil
		}
		if list.Metadata.Continue == "" && sameVersions(h.Snapshot, list.Items) {
			c.recordConfirmed(h, present)
			return nil
		}
		select {
		case <-h.Next:
		case <-ctx.Done():
			return readapi.NewTooLargeError(present, c.completeUntil(h))
		}
	}
}

// awaitEpoch blocks until the informer has listed the type again.
func (c *collection) awaitEpoch(ctx context.Context, earlier dynamicinformer.History) error {
	for {
		h := c.informer.History()
		if h.Epoch != earlier.Epoch && h.Synced {
			return nil
		}
		select {
		case <-h.Next:
		case <-ctx.Done():
			return apierrors.NewServiceUnavailable("the API server was restored from an older backup, and the cache has not been listed again yet")
		}
	}
}

func (c *collection) listPath() string {
	path := "/apis/" + c.gvr.Group + "/" + c.gvr.Version
	if c.gvr.Group == "" {
		path = "/api/" + c.gvr.Version
	}
	if namespace := c.informer.History().Namespace; namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + c.gvr.Resource
}

// sameVersions reports whether a snapshot has the same objects with the same versions.
func sameVersions(s *dynamicinformer.Snapshot, items []item) bool {
	if s.Len() != len(items) {
		return false
	}
	for _, i := range items {
		key := i.Metadata.Name
		if i.Metadata.Namespace != "" {
			key = i.Metadata.Namespace + "/" + key
		}
		stored, _ := s.Stored(key)
		o, ok := stored.(interface{ GetResourceVersion() string })
		if !ok || o.GetResourceVersion() != i.Metadata.ResourceVersion {
			return false
		}
	}
	return true
}

// probeSeconds is the duration of a probe's watch. A kube-apiserver sends a bookmark two seconds before the
// end.
const probeSeconds = "3"

// probe watches up to a version, and blocks until the cache has the changes of that watch.
func (c *collection) probe(ctx context.Context, begin dynamicinformer.History, present uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	last := make(chan uint64, 1)
	failed := make(chan error, 1)
	go func() { // ended by cancel
		version, err := c.watchTo(ctx, begin.ResourceVersion, present)
		if err != nil {
			failed <- err
			return
		}
		last <- version
	}()
	desired, confirms := present, false
	for {
		h := c.informer.History()
		if h.ResourceVersion >= desired || h.Epoch != begin.Epoch && h.Synced &&
			h.ResourceVersion >= present {
			if confirms && h.Epoch == begin.Epoch {
				c.recordConfirmed(h, present)
			}
			return nil
		}
		select {
		case <-h.Next:
		case desired = <-last:
			confirms = true
		case err := <-failed:
			return err
		case <-ctx.Done():
			return readapi.NewTooLargeError(present, c.completeUntil(h))
		}
	}
}

// watchError is an error event of a watch. Clients get 503.
type watchError struct {
	*apierrors.StatusError
	code int32 // HTTP status
}

func newWatchError(text json.RawMessage) error {
	var status metav1.Status
	_ = json.Unmarshal(text, &status) // other objects have no code
	return &watchError{apierrors.NewServiceUnavailable("the API server ended a watch: " + string(text)),
		status.Code}
}

// watchTo watches from one version to another. It returns the version of the last change in between, or from.
func (c *collection) watchTo(ctx context.Context, from, to uint64) (uint64, error) {
	body, err := c.server.upstream.get(ctx, c.listPath(), url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {probeSeconds},
		"resourceVersion": {strconv.FormatUint(from, 10)},
	}, acceptPartial)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	last := from
	events := json.NewDecoder(bufio.NewReader(body))
	for {
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		var object item
		err := events.Decode(&event)
		if err == nil && event.Type == "ERROR" {
			return 0, newWatchError(event.Object)
		}
		if err == nil {
			err = json.Unmarshal(event.Object, &object)
		}
		if err == io.EOF || err != nil {
			return 0, unreachableError(err)
		}
		version, err := strconv.ParseUint(object.Metadata.ResourceVersion, 10, 64)
		switch {
		case err != nil:
			return 0, apierrors.NewInternalError(err)
		case version > to:
			return last, nil
		case event.Type != "BOOKMARK":
			last = version
		}
		if version == to {
			return last, nil
		}
	}
}
