package informer

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	verifyPageSize = 500
	// verifyAttempts limits the comparisons of a partition if the server forgets the compared version.
	verifyAttempts = 3
)

var errNoVersion = errors.New("the cache is not at one resource version, for example after a write to it")

// startVerification verifies the content periodically until ctx ends, and relists if it differs.
func (g *incarnation) startVerification(ctx context.Context) {
	i := g.informer
	period := i.options.VerifyPeriod
	if period <= 0 {
		return
	}
	i.workers.Go(func() { // ended by ctx
		for waitOrDone(ctx, i.clock, period-period/10+rand.N(period/5+1)) {
			diverged, err := i.Verify(ctx)
			if ctx.Err() != nil {
				return
			}
			i.options.OnVerified(diverged, err)
			if diverged {
				_ = i.Relist(ctx) // fails only at the end of ctx or the informer
			}
		}
	})
}

// Verify compares the keys, UIDs and resource versions of the objects of each partition with the server's, at
// the partition's resource version. It reports whether one differs in two comparisons in a row. The error
// reports partitions that could not be compared.
func (i *Informer) Verify(ctx context.Context) (diverged bool, err error) {
	i.mu.Lock()
	streams := slices.Clone(i.mu.streams)
	i.mu.Unlock()
	var errs []error
	for _, w := range streams {
		differs, err := w.differs(ctx)
		if differs {
			differs, err = w.differs(ctx) // the partition may have been narrowed meanwhile
		}
		if err != nil {
			errs = append(errs, err)
		}
		diverged = diverged || differs
	}
	return diverged, errors.Join(errs...)
}

// differs reports whether the partition's objects differ from the server's at the same resource version.
func (w *inlineWatch) differs(ctx context.Context) (differs bool, err error) {
	for range verifyAttempts {
		version, cached := w.cachedDigest()
		if version == "" {
			return false, errNoVersion
		}
		var listed digest
		if listed, err = w.listedDigest(ctx, version); err == nil {
			return listed != cached, nil
		}
		err = fmt.Errorf("list metadata at resource version %s: %w", version, err)
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			break
		}
	}
	return false, err
}

// digest identifies a set of objects.
type digest struct {
	objects int
	sum     uint64
}

var digestSeed = maphash.MakeSeed()

func (d *digest) add(key string, object Item) {
	d.objects++
	d.sum += maphash.Comparable(digestSeed, [3]string{key, string(uidOf(object)), versionOf(object)})
}

// cachedDigest returns the digest of the partition's objects, and their resource version; empty if they have
// none.
func (w *inlineWatch) cachedDigest() (version string, d digest) {
	i := w.informer
	i.mu.Lock()
	version, content := w.partition.resumeVersion, i.store.Snapshot()
	i.mu.Unlock()
	for _, key := range keysOf(content, w.prefix()) {
		item, _ := content.Get(key)
		if w.selects(item) {
			d.add(key, item)
		}
	}
	return version, d
}

// listedDigest returns the digest of the server's objects at a resource version.
func (w *inlineWatch) listedDigest(ctx context.Context, version string) (d digest, err error) {
	options := metav1.ListOptions{Limit: verifyPageSize, ResourceVersion: version,
		ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	for {
		page, err := w.lw.ListMetadata(ctx, options)
		if err != nil {
			return d, err
		}
		err = meta.EachListItem(page, func(object runtime.Object) error {
			key, err := keyOf(object)
			if err == nil && w.selects(object) {
				d.add(key, object)
			}
			return err
		})
		if err != nil {
			return d, err
		}
		list, err := meta.ListAccessor(page)
		if err != nil || list.GetContinue() == "" {
			return d, err
		}
		options = metav1.ListOptions{Limit: verifyPageSize, Continue: list.GetContinue()}
	}
}
