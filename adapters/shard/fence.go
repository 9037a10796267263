package shard

import (
	"context"
	"math"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// annotationToken stores the token of the last ownership on the Lease of a shard.
const annotationToken = "shard.crdcache.dev/token"

// maxToken is the greatest token that is read from a Lease. It leaves room for later ownerships.
const maxToken = math.MaxInt64 / 2

// fencedLeases assigns a token to each ownership. It is greater than the resource version of the Lease before
// the holder's update, and all versions of a cluster come from one counter. No earlier ownership has it, even
// if the Lease was reset or deleted. A Lease that does not exist is first created without a holder, to get a
// resource version. The annotation is for a restore of etcd, which resets the counter.
type fencedLeases struct {
	coordinationclient.LeasesGetter
	lock *shardLock
}

func (f fencedLeases) Leases(namespace string) coordinationclient.LeaseInterface {
	return fencedLeaseClient{f.LeasesGetter.Leases(namespace), f.lock}
}

type fencedLeaseClient struct {
	coordinationclient.LeaseInterface
	lock *shardLock
}

func (f fencedLeaseClient) Create(
	ctx context.Context, lease *coordinationv1.Lease, options metav1.CreateOptions,
) (*coordinationv1.Lease, error) {
	if f.lock.state().isHeld { // its Lease was deleted
		f.lock.writeToken(lease)
		return f.LeaseInterface.Create(ctx, lease, options)
	}
	free := lease.DeepCopy()
	free.Spec = coordinationv1.LeaseSpec{}
	created, err := f.LeaseInterface.Create(ctx, free, options)
	if err != nil {
		return nil, err
	}
	created.Spec = lease.Spec
	return f.Update(ctx, created, metav1.UpdateOptions{})
}

func (f fencedLeaseClient) Update(
	ctx context.Context, lease *coordinationv1.Lease, options metav1.UpdateOptions,
) (*coordinationv1.Lease, error) {
	if !f.lock.state().isHeld {
		f.lock.token = max(f.lock.greatestToken, greatestToken(lease)) + 1
	}
	f.lock.writeToken(lease)
	return f.LeaseInterface.Update(ctx, lease, options)
}

func (l *shardLock) writeToken(lease *coordinationv1.Lease) {
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, annotationToken, strconv.FormatInt(l.token, 10))
}

// greatestToken returns the greatest possible token of all ownerships of a Lease so far.
func greatestToken(lease *coordinationv1.Lease) int64 {
	// Fake clients have no resource versions, which count as 0.
	version, _ := strconv.ParseInt(lease.ResourceVersion, 10, 64)
	token, err := strconv.ParseInt(lease.Annotations[annotationToken], 10, 64)
	if err != nil || token > maxToken {
		return version // not a token of a replica
	}
	return max(version, token)
}
