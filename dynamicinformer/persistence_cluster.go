package dynamicinformer

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/internal/requests"
)

// cluster tells which cluster the client talks to. A UID is asked for once.
type cluster struct {
	client   dynamic.Interface
	endpoint string // empty: not known
	// asking holds a token while somebody asks, and guards the rest.
	asking chan struct{}
	asked  bool
	uid    types.UID
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

// id returns the UID of the namespace kube-system, which lives as long as the cluster. It is empty where there is none or it
// may not be read.
func (c *cluster) id(ctx context.Context) (types.UID, error) {
	select {
	case c.asking <- struct{}{}:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { <-c.asking }()
	if c.asked {
		return c.uid, nil
	}
	ctx, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	namespaces := c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	system, err := namespaces.Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	switch {
	case err == nil:
		c.uid = system.GetUID()
	case !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err):
		return "", err
	}
	c.asked = true
	return c.uid, nil
}

// is reports whether a checkpoint is of the cluster with this UID. Where one of the two has none, the endpoint counts.
func (c *cluster) is(at Checkpoint, uid types.UID) bool {
	if uid != "" && at.Cluster != "" {
		return uid == at.Cluster
	}
	return c.mayBe(at)
}

// mayBe reports whether a checkpoint is of a server at the same address.
func (c *cluster) mayBe(at Checkpoint) bool { return c.endpoint != "" && c.endpoint == at.Endpoint }
