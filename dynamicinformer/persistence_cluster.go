package dynamicinformer

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/internal/requests"
)

// cluster tells which cluster the client talks to. That may change while the process runs: another server
// takes over the address.
type cluster struct {
	client   dynamic.Interface
	endpoint string // empty: not known
	// asking holds a token while somebody asks, and guards the rest.
	asking chan struct{}
	// uid is the first UID that was answered, err what came of the latest question, which was put at asked.
	uid   types.UID
	err   error
	asked time.Time // zero: never
	// other is the first other UID that was answered. It stays: what informers hold may be of both.
	other types.UID
}

func newCluster(client dynamic.Interface) *cluster {
	c := &cluster{client: client, asking: make(chan struct{}, 1)}
	if own, ok := client.(*requests.Client); ok {
		c.endpoint = own.Endpoint()
	}
	return c
}

// clusterPatience is how long the answer may take.
const clusterPatience = 10 * time.Second

// sameCluster is how long an answer counts for what begins now.
const sameCluster = 10 * time.Second

// id returns the UID of the namespace kube-system, which lives as long as the cluster, as it was at some time
// since then, or a tolerance before. It is empty where there is none or it may not be read. It fails once it
// is another one than at first.
func (c *cluster) id(ctx context.Context, since time.Time, tolerance time.Duration) (types.UID, error) {
	select {
	case c.asking <- struct{}{}:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { <-c.asking }()
	if c.err == nil {
		since = since.Add(-tolerance)
	}
	if c.asked.IsZero() || c.asked.Before(since) {
		c.askLocked(ctx)
	}
	switch {
	case c.other != "":
		return "", fmt.
			Errorf(
				"the server is another cluster, of UID %s, than it was at first, of UID %s: nothing is kept until the process begins anew", c.other, c.uid)
	case c.err != nil:
		return "", c.err
	}
	return c.uid, nil
}

func (c *cluster) askLocked(ctx context.Context) {
	began := time.Now()
	asking, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	namespaces := c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	system, err := namespaces.Get(asking, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil && ctx.Err() != nil {
		c.asked, c.err = time.Time{}, err // whoever asks next may have more time
		return
	}
	c.asked, c.err = began, nil
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsNotFound(err): // the answer before counts, if there is one
	case err != nil:
		c.err = err
	case c.uid == "":
		c.uid = system.GetUID()
	case c.uid != system.GetUID() && c.other == "":
		c.other = system.GetUID()
	}
}

// is reports whether a checkpoint is of the cluster with this UID. Where one of the two has none, the
// endpoint counts.
func (c *cluster) is(at persistence.Checkpoint, uid types.UID) bool {
	if uid != "" && at.Cluster != "" {
		return uid == at.Cluster
	}
	return c.mayBe(at)
}

// mayBe reports whether a checkpoint is of a server at the same address.
func (c *cluster) mayBe(at persistence.Checkpoint) bool {
	return c.endpoint != "" && c.endpoint == at.Endpoint
}
