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
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi"
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
	checks := &c.checks
	checks.mu.Lock()
	if checks.mu.next == nil {
		checks.mu.next = &freshnessCheck{done: make(chan struct{})}
	}
	check := checks.mu.next
	if !checks.mu.running {
		checks.mu.running = true
		go c.runChecks() // ends after the last requested check; each check has a timeout
	}
	checks.mu.Unlock()
	select {
	case <-check.done:
		return check.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitForVersion blocks until the cache has reached a version, or a freshness check has ended. It returns
// no error for a version that the API server has not reached: the handler reports it.
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
	checks := &c.checks
	for {
		checks.mu.Lock()
		check := checks.mu.next
		checks.mu.next = nil
		checks.mu.running = check != nil
		checks.mu.Unlock()
		if check == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), checks.timeout)
		check.err = c.checkFreshness(ctx)
		cancel()
		close(check.done)
	}
}

type listPage struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
	Items []listItem `json:"items"`
}

type listItem struct {
	Metadata struct {
		Name            string `json:"name"`
		Namespace       string `json:"namespace"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
}

const (
	// maxListedObjects is the number of objects up to which the request for the server's version also lists
	// the versions of the objects.
	maxListedObjects = 500
	// maxComparedObjects is the number of objects up to which a cache that lags is compared with a list. This
	// takes some hundredths of a second, and a bookmark takes more than one second.
	maxComparedObjects = 5000
	acceptPartials     = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
	acceptPartial      = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
)

// checkFreshness reads the resource version of the API server, and blocks until the cache has reached it.
//
// If the cache was ahead of the API server, the API server was restored from a backup. The cache is fresh
// after its informer has listed the type again, which begins another epoch.
//
// Resource versions count the changes of all types, and an idle watch receives the versions of other types
// only once a minute, in bookmarks. A cache that lags can therefore be complete. Up to maxComparedObjects, it
// checks this by comparing the versions of the objects. Otherwise it watches from the version of the cache
// until a bookmark confirms the version, and blocks until the cache has the changes of that watch.
func (c *collection) checkFreshness(ctx context.Context) error {
	if c.isPolled() {
		return c.informer.Relist(ctx)
	}
	historyBeforeList := c.informer.History()
	limit := maxListedObjects
	if historyBeforeList.Snapshot.Len() > maxListedObjects {
		limit = 1 // most types of this size have changed recently, so that the version is enough
	}
	list, serverVersion, err := c.listVersions(ctx, limit)
	if err != nil {
		return err
	}
	if historyBeforeList.ResourceVersion > serverVersion {
		return c.awaitEpoch(ctx, historyBeforeList)
	}
	history := c.informer.History()
	if list.Metadata.Continue != "" && history.ResourceVersion < serverVersion &&
		history.Snapshot.Len() <= maxComparedObjects {
		if list, serverVersion, err = c.listVersions(ctx, maxComparedObjects); err != nil {
			return err
		}
		history = c.informer.History()
	}
	if list.Metadata.Continue != "" && history.ResourceVersion < serverVersion {
		return c.probeWatch(ctx, history, serverVersion)
	}
	for {
		current := c.informer.History()
		if current.ResourceVersion >= serverVersion {
			return nil
		}
		if list.Metadata.Continue == "" && sameVersions(current.Snapshot, list.Items) {
			c.recordConfirmed(current, serverVersion)
			return nil
		}
		select {
		case <-current.Next:
		case <-ctx.Done():
			return readapi.NewResourceVersionTooLargeError(serverVersion, c.completeUntil(current))
		}
	}
}

// listVersions lists at most limit objects with their versions, and returns the version of the API server.
// Such a list also makes a kube-apiserver ask etcd for progress, without which an idle watch receives no
// bookmark.
func (c *collection) listVersions(ctx context.Context, limit int) (list listPage, version uint64, err error) {
	body, err := c.server.upstream.get(ctx, c.listPath(), url.Values{"limit": {strconv.Itoa(limit)}},
		acceptPartials)
	if err != nil {
		return list, 0, err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(&list); err != nil {
		return list, 0, unreachableError(err)
	}
	if version, err = strconv.ParseUint(list.Metadata.ResourceVersion, 10, 64); err != nil {
		return list, 0, apierrors.NewInternalError(err)
	}
	return list, version, nil
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
	return apiPath(c.gvr.Group, c.gvr.Version, c.informer.History().Namespace, c.gvr.Resource)
}

// sameVersions reports whether a snapshot has the same objects with the same versions.
func sameVersions(s *dynamicinformer.Snapshot, items []listItem) bool {
	if s.Len() != len(items) {
		return false
	}
	for _, item := range items {
		stored, _ := s.Stored(naming.KeyOf(item.Metadata.Namespace, item.Metadata.Name))
		o, ok := stored.(interface{ GetResourceVersion() string })
		if !ok || o.GetResourceVersion() != item.Metadata.ResourceVersion {
			return false
		}
	}
	return true
}

// probeSeconds is the duration of a probe's watch. A kube-apiserver sends a bookmark two seconds before the
// end.
const probeSeconds = "3"

// probeWatch watches up to a version, and blocks until the cache has the changes of that watch.
func (c *collection) probeWatch(ctx context.Context, start dynamicinformer.History,
	serverVersion uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watchedVersion := make(chan uint64, 1)
	watchErr := make(chan error, 1)
	go func() { // ended by cancel
		version, err := c.watchTo(ctx, start.ResourceVersion, serverVersion)
		if err != nil {
			watchErr <- err
			return
		}
		watchedVersion <- version
	}()
	desired, isConfirmed := serverVersion, false
	for {
		history := c.informer.History()
		if history.ResourceVersion >= desired || history.Epoch != start.Epoch && history.Synced &&
			history.ResourceVersion >= serverVersion {
			if isConfirmed && history.Epoch == start.Epoch {
				c.recordConfirmed(history, serverVersion)
			}
			return nil
		}
		select {
		case <-history.Next:
		case desired = <-watchedVersion:
			isConfirmed = true
		case err := <-watchErr:
			return err
		case <-ctx.Done():
			return readapi.NewResourceVersionTooLargeError(serverVersion, c.completeUntil(history))
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
	lastVersion := from
	events := json.NewDecoder(bufio.NewReader(body))
	for {
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		var object listItem
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
			return lastVersion, nil
		case event.Type != "BOOKMARK":
			lastVersion = version
		}
		if version == to {
			return lastVersion, nil
		}
	}
}
