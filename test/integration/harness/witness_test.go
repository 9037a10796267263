package harness

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

func object(uid, version string, value int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "n", "name": "o", "uid": uid, "resourceVersion": version},
		"spec":     map[string]any{"value": value},
	}}
}

func TestWitness(t *testing.T) {
	one, two, another := object("a", "9", 1), object("a", "10", 2), object("b", "11", 1)
	lose := func(w *Witness) { w.OnDelete(cache.DeletedFinalStateUnknown{Key: "n/o", Obj: one}) }
	for _, c := range []struct {
		name string
		send func(*Witness)
		want string // part of the message; empty if none is expected
	}{
		{name: "a life", send: func(w *Witness) {
			w.OnAdd(one, true)
			w.OnUpdate(one, two)
			w.OnDelete(two)
			w.OnAdd(another, false)
		}},
		{name: "a repeat", send: func(w *Witness) { w.OnAdd(one, true); w.OnUpdate(one, one) }},
		{name: "two incarnations", send: func(w *Witness) { w.OnAdd(one, true); lose(w); w.OnAdd(one, true) }},
		{name: "added twice", send: func(w *Witness) { w.OnAdd(one, true); w.OnAdd(two, false) },
			want: "is for an existing object"},
		{name: "updated before it is added", send: func(w *Witness) { w.OnUpdate(one, two) },
			want: "is for a missing object"},
		{name: "another UID", send: func(w *Witness) { w.OnAdd(one, true); w.OnUpdate(one, another) },
			want: "another UID"},
		{name: "a gap", send: func(w *Witness) { w.OnAdd(one, true); w.OnUpdate(two, object("a", "12", 3)) },
			want: "has the old version 10, want 9"},
		{name: "backwards", send: func(w *Witness) { w.OnAdd(two, true); w.OnUpdate(two, one) },
			want: "follows version 10"},
		{name: "back from the dead",
			send: func(w *Witness) {
				w.OnAdd(one, true)
				w.OnDelete(two)
				w.OnAdd(two, false)
			}, want: "is for a deleted object"},
		{name: "lost and back in one incarnation",
			send: func(w *Witness) {
				w.OnAdd(one, true)
				lose(w)
				w.OnAdd(one, true)
				lose(w)
				w.OnAdd(one, true)
			},
			want: "is for a deleted object"},
		{name: "another key", send: func(w *Witness) {
			w.OnAdd(one, true)
			w.OnDelete(cache.DeletedFinalStateUnknown{Key: "n/x", Obj: one})
		}, want: "has the object n/o"},
		{name: "no version", send: func(w *Witness) { w.OnAdd(object("a", "x", 1), true) },
			want: "invalid syntax"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWitness("w", func() int { return 2 })
			c.send(w)
			got := strings.Join(w.Violations(), "\n")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("the violation is %q, want one with %q", got, c.want)
			}
			if again := w.Violations(); again != nil {
				t.Errorf("the second Violations() = %q, want none", again)
			}
		})
	}
}

func TestForget(t *testing.T) {
	w := NewWitness("w", nil)
	w.OnAdd(object("a", "1", 1), true)
	w.OnDelete(object("a", "2", 1))
	w.OnAdd(object("b", "3", 5), true)
	w.Forget()
	if diff := cmp.Diff(map[types.UID]int64{"b": 5}, w.LastStates()); diff != "" {
		t.Errorf("LastStates (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]WitnessedObject{"n/o": {UID: "b", Value: 5}}, w.LiveObjects()); diff != "" {
		t.Errorf("LiveObjects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(EventCounts{Events: 3}, w.Counts()); diff != "" {
		t.Errorf("Counts (-want +got):\n%s", diff)
	}
}
