package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/serving/readapi"
)

// waitUntilFresh blocks until the cache has reached the API server's state at the time of the call.
func (c *collection) waitUntilFresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.server.options.FreshTimeout)
	defer cancel()
	text, err := c.informer.WaitUntilFresh(ctx)
	version, _ := strconv.ParseUint(text, 10, 64)
	history := c.informer.History()
	var answer apierrors.APIStatus
	switch {
	case err == nil:
		c.recordConfirmed(history, version)
		return nil
	case errors.As(err, &answer):
		return &apierrors.StatusError{ErrStatus: answer.Status()}
	case ctx.Err() != nil && version > 0:
		return readapi.NewResourceVersionTooLargeError(version, c.completeUntil(history))
	}
	return unreachableError(err)
}

// waitForVersion blocks until the cache has reached a version, or the API server's state. It returns no error
// for a version that the API server has not reached: the handler reports it.
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

const acceptPartial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"

func (c *collection) listPath() string {
	return apiPath(c.gvr.Group, c.gvr.Version, c.informer.History().Namespace, c.gvr.Resource)
}

// probeSeconds is the duration of a watch of watchTo. A kube-apiserver sends a bookmark two seconds before
// the end.
const probeSeconds = "3"

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
		var object struct {
			Metadata struct {
				ResourceVersion string `json:"resourceVersion"`
			} `json:"metadata"`
		}
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
