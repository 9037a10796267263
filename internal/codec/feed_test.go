package codec_test

import (
	"io"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/crdcache/crdcache/internal/codec"
	"github.com/crdcache/crdcache/internal/packed"
)

// replayFed is replay for a watch with a feed. It returns the number of events in each batch as well.
func replayFed(t testing.TB, packer *packed.Packer, stream io.Reader) (steps []step, batches []int) {
	t.Helper()
	feed := codec.NewFeed()
	others := false
	feed.Of(watch.NewEmptyWatch()).Deliver(func(batch []watch.Event) bool {
		if others {
			t.Error("events are fed after some that were not")
		}
		batches = append(batches, len(batch))
		for _, event := range batch {
			steps = append(steps, step{Type: string(event.Type), Object: event.Object})
		}
		return true
	})
	for next := range decoded(t, codec.WrapPacked(stock(), packer, feed), stream) {
		others = true
		steps = append(steps, next)
	}
	return steps, batches
}

// TestFeedBatches checks what batches hold: what is there, and no more than a few bytes or events.
func TestFeedBatches(t *testing.T) {
	some := func(n int, object string) string { return strings.Repeat(event("ADDED", object), n) }
	tests := map[string]struct {
		stream io.Reader
		want   func(batch int) bool
		events int
	}{
		"small events":        {strings.NewReader(some(1000, widget(1))), func(n int) bool { return n <= 64 }, 1000},
		"large events":        {strings.NewReader(some(3, large)), func(n int) bool { return n == 1 }, 3},
		"what comes together": {io.MultiReader(strings.NewReader(some(5, widget(1))), strings.NewReader(some(5, widget(1)))), func(n int) bool { return n == 5 }, 10},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			steps, batches := replayFed(t, nil, test.stream)
			if len(steps) != test.events+1 {
				t.Errorf("got %d steps", len(steps))
			}
			for _, n := range batches {
				if !test.want(n) {
					t.Errorf("the batches have %v events", batches)
				}
			}
		})
	}
}

// TestFeedStops checks that a stream ends when nobody takes its events.
func TestFeedStops(t *testing.T) {
	feed := codec.NewFeed()
	source := watch.NewFake()
	w := feed.Of(source)
	w.Stop()
	w.Stop()
	if !source.IsStopped() {
		t.Error("the watch goes on")
	}
	steps := replay(t, codec.WrapPacked(stock(), nil, feed), strings.NewReader(strings.Repeat(event("ADDED", widget(1)), 100)))
	if len(steps) != 1 || steps[0].Ended != io.EOF.Error() {
		t.Errorf("got %v", steps)
	}
}
