package lifecycle_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestRecreatedUnseen hides the deletion of a definition from tracker and informer. They only observe that
// its UID changed.
func TestRecreatedUnseen(t *testing.T) {
	t.Parallel()
	var l cuttableConnection
	s := newFixture(t, dynamicinformer.Options{Config: l.wrapConfig(harness.Config(t))},
		l.wrapConfig(harness.Config(t)))
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	i, j := s.startInformer(resourceOf(widgets))
	j.expect("add a")
	before, first := j.uid("a"), s.awaitSynced(i, 1)
	s.awaitWatched(widgets, j)

	release := l.cut()
	s.uninstall(widgets)
	s.reinstall(widgets)
	s.create(widgets, "a")
	j.expectNothing()
	release()
	second := s.awaitSynced(i, 2)
	j.await("the new object", func(_ []string, live map[string]types.UID) bool {
		return live["a"] != "" && live["a"] != before
	})
	if second.Incarnation != 2 || second.UID == first.UID {
		t.Errorf("the status is %+v, before it was %+v; want incarnation 2 and another UID", second, first)
	}
}
