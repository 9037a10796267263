package shard

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"
)

// annotationToken stores the token of the last ownership on the Lease of a shard.
const annotationToken = "shard.crdcache.dev/token"

// maxToken is the greatest token that is read from a Lease. It leaves room for later ownerships.
const maxToken = math.MaxInt64 / 2

var errHeldByOther = errors.New("another replica holds the Lease")

// ownLease is a Lease that this replica writes. One goroutine at a time uses it.
type ownLease struct {
	member *Member
	name   string
	labels map[string]string
	// held is the Lease as the replica has last written it; nil before. sent is the time at which that write
	// was sent.
	held *coordinationv1.Lease
	sent time.Time
	// token is the fencing token; 0 for member Leases, which have none.
	token int64
}

func (m *Member) newLease(name string) *ownLease {
	return &ownLease{member: m, name: name, labels: map[string]string{labelGroup: m.options.Name,
		labelShards: strconv.Itoa(m.options.Shards), labelLayout: m.options.Layout}}
}

// write writes a Lease with this replica as its holder. base is the Lease on the server; without a resource
// version, write creates it.
func (l *ownLease) write(ctx context.Context, base *coordinationv1.Lease) error {
	next, sent := base.DeepCopy(), time.Now()
	next.Name = l.name
	next.Labels = labels.Merge(base.Labels, l.labels)
	if l.token > 0 {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, annotationToken, strconv.FormatInt(l.token, 10))
	}
	now := metav1.NewMicroTime(sent)
	acquired, transitions := &now, ptr.Deref(base.Spec.LeaseTransitions, 0)+1
	if l.held != nil {
		acquired, transitions = l.held.Spec.AcquireTime, *l.held.Spec.LeaseTransitions
	}
	next.Spec = coordinationv1.LeaseSpec{HolderIdentity: &l.member.identity, AcquireTime: acquired,
		RenewTime: &now, LeaseTransitions: &transitions,
		LeaseDurationSeconds: new(int32(l.member.options.LeaseDuration / time.Second))}
	var written *coordinationv1.Lease
	var err error
	if next.ResourceVersion == "" {
		written, err = l.client().Create(ctx, next, metav1.CreateOptions{})
	} else {
		written, err = l.client().Update(ctx, next, metav1.UpdateOptions{})
	}
	if err == nil {
		l.held, l.sent = written, sent
	}
	return err
}

// renew writes the Lease again, or creates it. It returns ErrLost if another replica has taken it.
func (l *ownLease) renew(ctx context.Context) error {
	err := l.write(ctx, cmp.Or(l.held, &coordinationv1.Lease{}))
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
		return err
	}
	current, err := l.client().Get(ctx, l.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return l.write(ctx, &coordinationv1.Lease{})
	case err != nil:
		return err
	case l.held != nil && !l.holds(current):
		return ErrLost
	}
	return l.write(ctx, current)
}

// holds reports whether a Lease belongs to the same ownership as the held one.
func (l *ownLease) holds(current *coordinationv1.Lease) bool {
	return holderOf(current.Spec) == l.member.identity &&
		ptr.Equal(current.Spec.LeaseTransitions, l.held.Spec.LeaseTransitions)
}

func holderOf(spec coordinationv1.LeaseSpec) string { return ptr.Deref(spec.HolderIdentity, "") }

func (l *ownLease) client() coordinationclient.LeaseInterface {
	return l.member.client.Leases(l.member.options.Namespace)
}

// acquire acquires the Lease of a shard if it has no holder, or was observed unchanged for its duration.
// observed is its observed state, or nil.
//
// The token is greater than the resource version of the Lease before the holder's update, and all versions of
// a cluster come from one counter. No earlier ownership has it, even if the Lease was reset or deleted. A
// Lease that does not exist is first created without a holder, to get a resource version. The annotation is
// for a restore of etcd, which resets the counter.
func (l *ownLease) acquire(ctx context.Context, observed *observedLease) error {
	lease, err := l.client().Get(ctx, l.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if observed != nil && l.isHeldByOther(observed.spec) { // it will create it again, or was killed
			return errHeldByOther
		}
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: l.name, Labels: l.labels}}
		lease, err = l.client().Create(ctx, lease, metav1.CreateOptions{})
	case err == nil && l.isHeldByOther(lease.Spec):
		return errHeldByOther
	}
	if err != nil {
		return err
	}
	l.token = max(greatestToken(lease), cmp.Or(observed, &observedLease{}).token) + 1
	return l.write(ctx, lease) // which fails if the Lease has changed
}

func (l *ownLease) isHeldByOther(spec coordinationv1.LeaseSpec) bool {
	holder := holderOf(spec)
	return holder != "" && holder != l.member.identity && !l.member.expired(l.name, spec)
}

// release removes the holder from the Lease, if the replica holds it.
func (l *ownLease) release(ctx context.Context) error {
	for l.held != nil {
		current, err := l.client().Get(ctx, l.name, metav1.GetOptions{})
		if err != nil || !l.holds(current) {
			return err
		}
		current.Spec.HolderIdentity, current.Spec.LeaseDurationSeconds = nil, new(int32(1))
		_, err = l.client().Update(ctx, current, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
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
