package filesource

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/internal/snapshot"
	"github.com/crdcache/crdcache/serving/readapi"
)

// snapshotCollection has the objects of a type, which never change.
type snapshotCollection struct {
	source       *Source
	savedObjects *snapshot.Objects
	savedType    snapshot.SavedType
	version      uint64
	currentType  func() readapi.Type
	neverEnds    chan struct{}         // never closed
	readErr      atomic.Pointer[error] // why objects could not be read
}

var (
	_ readapi.Refuser   = (*snapshotCollection)(nil)
	_ readapi.Versioned = (*snapshotCollection)(nil)
)

func newSnapshotCollection(b *snapshotBackend, objects *snapshot.Objects) *snapshotCollection {
	c := &snapshotCollection{source: b.source, savedObjects: objects, savedType: objects.Type(),
		neverEnds: make(chan struct{})}
	c.currentType = sync.OnceValue(func() readapi.Type {
		if t, ok := b.typeFromDefinition(c.savedType.Type); ok {
			return t
		}
		return discoveredType(c.savedType)
	})
	// A snapshot has only one state. If its resource version is not a number, it is 1.
	c.version, _ = strconv.ParseUint(c.savedType.ResourceVersion, 10, 64)
	c.version = max(c.version, 1)
	return c
}

func (c *snapshotCollection) Type() readapi.Type { return c.currentType() }

func (c *snapshotCollection) Ended() <-chan struct{} { return c.neverEnds }

func (c *snapshotCollection) ResourceVersion() uint64 { return c.version }

// InVersion implements readapi.Versioned. Objects of a cluster have one version.
func (c *snapshotCollection) InVersion(version string) readapi.Collection {
	if len(c.savedType.Written) == 0 {
		return c
	}
	t := c.currentType()
	all, convert := c.source.selectObjects(&t, version, c.savedType.Written[version] > 0)
	if convert {
		return c
	}
	t.NeedsConversion, t.ServesUnconverted = false, true
	return &versionCollection{c, t, version, all}
}

// versionCollection has the objects in one version, or all, each in its own.
type versionCollection struct {
	*snapshotCollection
	typ     readapi.Type
	version string
	all     bool
}

func (c *versionCollection) Type() readapi.Type { return c.typ }

// Selects implements readapi.Filter.
func (c *versionCollection) Selects(o readapi.Object) (bool, error) {
	return c.all || c.version == o.Version(), nil
}

func (c *versionCollection) Get(key string) readapi.Object {
	if o := c.snapshotCollection.Get(key); c.all || o != nil && o.Version() == c.version {
		return o
	}
	return nil
}

// Since implements readapi.Collection. There are no changes.
func (c *snapshotCollection) Since(uint64) readapi.Changes {
	return readapi.Changes{ResourceVersion: c.version, Next: c.neverEnds}
}

func (c *snapshotCollection) Refused(version string) error {
	if readErr := c.readErr.Load(); readErr != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("read %s from the snapshot: %v",
			c.savedType.GVR().GroupResource(), *readErr))
	}
	if c.savedType.Missing != nil {
		return &apierrors.StatusError{ErrStatus: *c.savedType.Missing}
	}
	if !c.currentType().Custom && version != c.savedType.Version && c.savedType.Written[version] == 0 {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Message: fmt.Sprintf("the snapshot has %s in version %s, not in %s: name %s.%[2]s.%[5]s",
				c.savedType.GVR().GroupResource(), c.savedType.Version, version, c.savedType.Resource,
				c.savedType.Group),
		}}
	}
	return nil
}

// fail aborts the current answer, which would look complete otherwise. The next request gets the error.
func (c *snapshotCollection) fail(err error) {
	c.readErr.Store(&err)
	panic(http.ErrAbortHandler)
}
