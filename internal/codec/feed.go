package codec

import (
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/crdcache/crdcache/internal/packed"
)

// Feed brings the packed objects of one watch to whoever follows it, in batches, on the goroutine that reads. client-go
// hands over each event by itself, to another goroutine that it waits for, which costs more than reading it.
//
// A feed is given to WrapPacked, with which one watch is opened, and that watch to Of.
type Feed struct {
	ready chan struct{} // closed when there is take
	take  func([]watch.Event) bool
	quit  chan struct{} // closed when nobody follows any more
	stop  sync.Once

	// What follows is for the goroutine that reads.
	batch []watch.Event
	bytes int  // of the text of the batch
	left  bool // objects that are not wanted have been left out of it
	over  bool // the events that are left come from client-go
}

// What a batch holds at most; a single event may have more bytes.
const (
	batchEvents = 64
	batchBytes  = 64 << 10
)

// NewFeed returns a feed for one watch.
func NewFeed() *Feed {
	return &Feed{ready: make(chan struct{}), quit: make(chan struct{}), batch: make([]watch.Event, 0, batchEvents)}
}

// Of returns w, the watch that the feed was made for, with the feed's events.
func (f *Feed) Of(w watch.Interface) *FedWatch { return &FedWatch{rest: w, feed: f} }

// FedWatch is a watch whose events are fed from the first one on, as long as they are usual; from then on they come from
// ResultChan, which is closed when all have come.
type FedWatch struct {
	rest watch.Interface
	feed *Feed
}

var _ watch.Interface = (*FedWatch)(nil)

// Deliver has the watch call take, on a goroutine of its own, with one batch of events after the other, each of which is
// take's until it returns, and empty where all that came was not wanted. When take returns false, or Stop was called, there are no more. Deliver must be called once;
// without it, nothing comes.
func (w *FedWatch) Deliver(take func(batch []watch.Event) bool) {
	w.feed.take = take
	close(w.feed.ready)
}

// ResultChan implements watch.Interface for the events that are not fed. The first one comes when take has returned for
// the last time.
func (w *FedWatch) ResultChan() <-chan watch.Event { return w.rest.ResultChan() }

// Stop implements watch.Interface. It does not wait for take.
func (w *FedWatch) Stop() {
	w.feed.stop.Do(func() { close(w.feed.quit) })
	w.rest.Stop()
}

// add puts an event of so many bytes into the batch, and returns false when nobody follows any more.
func (f *Feed) add(event watch.Event, bytes int) bool {
	f.batch = append(f.batch, event)
	f.bytes += bytes
	return len(f.batch) < batchEvents && f.bytes < batchBytes || f.flush()
}

// flush delivers the batch, and returns false when nobody follows any more.
func (f *Feed) flush() bool {
	if len(f.batch) == 0 && !f.left {
		return true
	}
	select {
	case <-f.ready:
	case <-f.quit:
		return false
	}
	took := f.take(f.batch)
	clear(f.batch)
	f.batch, f.bytes, f.left = f.batch[:0], 0, false
	return took
}

// feedReader feeds the events of a stream, and reads what is left. Like lineReader it reads frames.
type feedReader struct {
	*lineReader
	stream *stream
	feed   *Feed
}

// Read implements io.Reader. It feeds what it can, and returns frames from the first one on that cannot be fed: the others
// must not overtake it. Events that have been read are delivered before it waits for more.
func (r *feedReader) Read(data []byte) (int, error) {
	for !r.feed.over {
		frame := r.take()
		if frame == nil && r.inLines() {
			if !r.feed.flush() {
				return 0, io.EOF
			}
			var err error
			if frame, err = r.next(); err != nil {
				return 0, err
			}
		}
		if frame != nil {
			kind, object, _ := r.stream.pack(frame)
			if object == packed.Unwanted {
				r.feed.left = true
				continue
			}
			if object != nil {
				if !r.feed.add(watch.Event{Type: kind, Object: object}, len(frame)) {
					return 0, io.EOF
				}
				continue
			}
			r.rest = frame
		}
		r.feed.over = true
	}
	if !r.feed.flush() {
		return 0, io.EOF
	}
	return r.lineReader.Read(data)
}
