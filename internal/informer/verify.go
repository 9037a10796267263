package informer

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdcache/crdcache/internal/store"
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
		var before digest
		for waitOrDone(ctx, i.clock, period-period/10+rand.N(period/5+1)) {
			difference, err := i.compare(ctx)
			if ctx.Err() != nil {
				return
			}
			result := VerifiedEqual
			switch {
			case difference == digest{}:
			case difference == before:
				result = VerifiedLasting
			default:
				result = VerifiedDiverged
			}
			before = difference
			i.options.OnVerified(g.logger, result, err)
			if result == VerifiedDiverged {
				_ = i.Relist(ctx) // fails only at the end of ctx or the informer
			}
		}
	})
}

// Verification is the result of a comparison with the server.
type Verification int

const (
	// VerifiedEqual: no difference was found.
	VerifiedEqual Verification = iota
	// VerifiedDiverged: the cache differs. It is listed again.
	VerifiedDiverged
	// VerifiedLasting: the cache differs as in the comparison before, although it was listed again.
	VerifiedLasting
)

// compare compares the keys, UIDs and resource versions of the objects of each watched partition with the
// server's, at the partition's resource version. It returns the sum of the differences that two comparisons
// in a row find. The error reports partitions that could not be compared.
func (i *Informer) compare(ctx context.Context) (difference digest, err error) {
	i.mu.Lock()
	streams := slices.Clone(i.mu.streams)
	i.mu.Unlock()
	var errs []error
	for _, w := range streams {
		if w.lw.Polls() {
			continue // each list is a comparison
		}
		one, err := w.difference(ctx)
		if one != (digest{}) {
			one, err = w.difference(ctx) // the partition may have been narrowed meanwhile
		}
		if err != nil {
			errs = append(errs, err)
		}
		difference.objectCount += one.objectCount
		difference.sum += one.sum
	}
	return difference, errors.Join(errs...)
}

// difference returns the difference between the partition's objects and the server's at the same resource
// version. It is zero if there is none.
func (w *inlineWatch) difference(ctx context.Context) (difference digest, err error) {
	for range verifyAttempts {
		version, cached, untransformed := w.cachedDigest()
		if version == "" {
			return digest{}, errNoVersion
		}
		var listed digest
		options := metav1.ListOptions{Limit: verifyPageSize, ResourceVersion: version,
			ResourceVersionMatch: metav1.ResourceVersionMatchExact}
		if listed, _, err = w.listedDigest(ctx, options, untransformed); err == nil {
			return digest{listed.objectCount - cached.objectCount, listed.sum - cached.sum}, nil
		}
		err = fmt.Errorf("list metadata at resource version %s: %w", version, err)
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			break
		}
	}
	return digest{}, err
}

// digest identifies a set of objects, or the difference between two.
type digest struct {
	objectCount int
	sum         uint64
}

var digestSeed = maphash.MakeSeed()

func (d *digest) add(key string, object Item) {
	d.objectCount++
	uid, version := string(store.UIDOf(object)), store.VersionOf(object)
	d.sum += maphash.Comparable(digestSeed, [3]string{key, uid, version})
}

// cachedDigest returns the digest of the partition's objects, and their resource version; empty if they have
// none. It omits the keys untransformed, because the cache has old versions of these objects.
func (w *inlineWatch) cachedDigest() (version string, d digest, untransformed map[string]bool) {
	i := w.informer
	i.mu.Lock()
	version, content := w.partition.resumeVersion, i.store.Snapshot()
	if w.awaited != "" {
		version = ""
	}
	untransformed = maps.Clone(w.untransformed)
	i.mu.Unlock()
	for _, key := range keysOf(content, w.prefix()) {
		item, _ := content.Get(key)
		if w.selects(item) && !untransformed[key] {
			d.add(key, item)
		}
	}
	return version, d, untransformed
}

// listedDigest returns the digest of the server's objects, without omitted keys, and their resource version.
func (w *inlineWatch) listedDigest(ctx context.Context, options metav1.ListOptions,
	omitted map[string]bool) (d digest, version string, err error) {
	for {
		page, err := w.lw.ListMetadata(ctx, options)
		if err != nil {
			return d, "", err
		}
		err = meta.EachListItem(page, func(object runtime.Object) error {
			key, err := store.KeyOf(object)
			if err == nil && w.selects(object) && !omitted[key] {
				d.add(key, object)
			}
			return err
		})
		if err != nil {
			return d, "", err
		}
		list, err := meta.ListAccessor(page)
		if err != nil {
			return d, "", err
		}
		if list.GetContinue() == "" {
			return d, list.GetResourceVersion(), nil
		}
		options = metav1.ListOptions{Limit: options.Limit, Continue: list.GetContinue()}
	}
}
