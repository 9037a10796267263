package persist

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/internal/requests"
)

// cluster identifies the cluster of a client. It changes if another server takes over the address.
type cluster struct {
	client dynamic.Interface
	// endpoint returns the current endpoint of the client; empty if unknown.
	endpoint func() string
	// token is a mutex that guards the fields below. It has an element while it is held.
	token chan struct{}
	// uid is the UID in the first response, err the error of the latest request.
	uid         types.UID
	err         error
	lastRequest time.Time // zero before the first request
	// conflictingUID is the first UID that differed from uid. It stays: informers may have objects of both.
	conflictingUID types.UID
}

func newCluster(client dynamic.Interface) *cluster {
	c := &cluster{client: client, endpoint: func() string { return "" }, token: make(chan struct{}, 1)}
	if requestsClient, ok := client.(*requests.Client); ok {
		c.endpoint = requestsClient.Endpoint
	}
	return c
}

const (
	clusterTimeout   = 10 * time.Second // of a request for the UID
	clusterTolerance = 10 * time.Second // the maximum age of a response that is used for a restore
)

// verifiedUID returns the UID of the namespace kube-system, which identifies the cluster. The UID comes from
// a request that was sent at since minus tolerance or later. It is empty if the namespace does not exist or
// may not be read. After a change of the UID, id always returns an error.
func (c *cluster) verifiedUID(ctx context.Context, since time.Time,
	tolerance time.Duration) (types.UID, error) {
	select {
	case c.token <- struct{}{}:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { <-c.token }()
	if c.err == nil {
		since = since.Add(-tolerance)
	}
	if c.lastRequest.IsZero() || c.lastRequest.Before(since) {
		c.requestLocked(ctx)
	}
	switch {
	case c.conflictingUID != "":
		return "", fmt.Errorf("the server belongs to another cluster (UID %s) than before (UID %s): "+
			"restart the process to persist objects again", c.conflictingUID, c.uid)
	case c.err != nil:
		return "", c.err
	}
	return c.uid, nil
}

func (c *cluster) requestLocked(ctx context.Context) {
	requestedAt := time.Now()
	requestCtx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	uid, err := requests.ClusterUID(requestCtx, c.client)
	if err != nil && ctx.Err() != nil {
		c.lastRequest, c.err = time.Time{}, err // the next caller repeats the request
		return
	}
	c.lastRequest, c.err = requestedAt, nil
	switch {
	case err != nil:
		c.err = err
	case uid == "": // an earlier UID remains valid
	case c.uid == "":
		c.uid = uid
	case c.uid != uid && c.conflictingUID == "":
		c.conflictingUID = uid
	}
}

// matchesCheckpoint reports whether a checkpoint is of the cluster with the UID, or else the endpoint.
func (c *cluster) matchesCheckpoint(checkpoint persistence.Checkpoint, uid types.UID) bool {
	if uid != "" && checkpoint.Cluster != "" {
		return uid == checkpoint.Cluster
	}
	return c.matchesEndpoint(checkpoint)
}

func (c *cluster) matchesEndpoint(checkpoint persistence.Checkpoint) bool {
	endpoint := c.endpoint()
	return endpoint != "" && endpoint == checkpoint.Endpoint
}
