package conformance

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"time"
)

// Reference is client-go's own informer.
func Reference(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(lw, example, resync, indexers)
}

// Run plays every scenario, once over LIST and once over WATCH-LIST, with client-go's informer and with the
// subject, and fails where what they show differs.
func Run(t *testing.T, config *rest.Config, subject New) {
	t.Helper()
	for _, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			t.Run("list", func(t *testing.T) { compare(t, config, sc, subject, false) })
			t.Run("watch-list", func(t *testing.T) { compare(t, config, sc, subject, true) })
		})
	}
}

func compare(t *testing.T, config *rest.Config, sc scenario, subject New, watchList bool) {
	var reference, trace []string
	t.Run("play", func(t *testing.T) {
		t.Run("client-go", func(t *testing.T) {
			t.Parallel()
			reference = play(t, config, sc, Reference, watchList)
		})
		t.Run("subject", func(t *testing.T) {
			t.Parallel()
			trace = play(t, config, sc, subject, watchList)
		})
	})
	if t.Failed() {
		return
	}
	if len(reference) == 0 {
		t.Error("the scenario notes nothing")
	}
	want := reference
	if sc.deviation != "" {
		want = sc.instead
		if diff := cmp.Diff(reference, sc.reference); diff != "" {
			t.Errorf("client-go no longer behaves as the deviation assumes (-client-go +expected):\n%s", diff)
		}
	}
	if diff := cmp.Diff(want, trace); diff != "" {
		t.Errorf("traces differ (-want +subject) %s\n%s", sc.deviation, diff)
	}
	t.Log(trace)
}

func play(t *testing.T, config *rest.Config, sc scenario, build New, watchList bool) []string {
	s := newStage(t, config, build, watchList)
	sc.play(s)
	if verb := map[bool]string{true: "watch-list", false: "list"}[watchList]; s.Faults.Requests(verb) == 0 {
		t.Errorf("the informer never sent a %s", verb)
	}
	return s.notes
}
