package experiment

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// watchListText returns the events of two objects, the end of the initial events, an update and a bookmark.
func watchListText() string {
	object := func(kind, name, more string) string {
		return `{"type":"` + kind +
			`","object":{"kind":"Certificate","metadata":{"labels":{"app.kubernetes.io/name":"x"},` +
			`"managedFields":[{"fieldsV1":{"f:metadata":{"f:name":{}}}}],"name":"` + name +
			`","namespace":"ns"},"spec":{"issuerRef":{"name":"i"}` + more + `}}}` + "\n"
	}
	long := `,"text":"` + strings.Repeat("x", 200<<10) + `"`
	bookmark := `{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
	return object("ADDED", "a", "") + object("ADDED", "b", long) + bookmark + object("MODIFIED", "b", "") +
		`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}` + "\n"
}

func TestStreamReportsEachObject(t *testing.T) {
	readers := map[string]io.Reader{
		"as it comes":  strings.NewReader(watchListText()),
		"half at most": iotest.HalfReader(strings.NewReader(watchListText())),
		"single bytes": iotest.OneByteReader(strings.NewReader(watchListText())),
	}
	for name, body := range readers {
		t.Run(name, func(t *testing.T) {
			var keys []string
			s := &watchStream{}
			synced := make(chan struct{})
			s.onObject = func(key string) {
				select {
				case <-synced:
					key += " after"
				default:
				}
				keys = append(keys, key)
			}
			if err := s.follow(body, synced); err == nil {
				t.Error("want an error at the end of the stream")
			}
			if diff := cmp.Diff([]string{"ns/a", "ns/b", "ns/b after"}, keys); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
			if s.Len() != 2 {
				t.Errorf("there are %d objects, want 2", s.Len())
			}
		})
	}
}
