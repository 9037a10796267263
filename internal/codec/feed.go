package codec

import (
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// Feed brings the packed objects of one watch to whoever follows it, in batches. client-go hands over each event by
// itself, from a goroutine that waits until it has been taken, which costs more than reading it.
//
// A feed is given to WrapPacked, with which one watch is opened, and that watch to Of.
type Feed struct {
	batches chan []watch.Event
	quit    chan struct{} // closed when nobody follows any more
	stop    sync.Once

	// batch is being filled, while other, the one before, may still be read. They are for the goroutine that reads.
	batch, other []watch.Event
	bytes        int // of the text of the batch
}

// What a batch holds at most; a single event may have more bytes.
const (
	batchEvents = 64
	batchBytes  = 64 << 10
)

// NewFeed returns a feed for one watch.
func NewFeed() *Feed {
	return &Feed{
		batches: make(chan []watch.Event), quit: make(chan struct{}),
		batch: make([]watch.Event, 0, batchEvents), other: make([]watch.Event, 0, batchEvents),
	}
}

// Of returns w, the watch that the feed was made for, with the feed's events.
func (f *Feed) Of(w watch.Interface) *FedWatch { return &FedWatch{rest: w, feed: f} }

// FedWatch is a watch whose usual events come from Batches, all others from ResultChan. None comes from either before
// those that precede it in the stream have been received from the other. ResultChan is closed after the last event.
type FedWatch struct {
	rest watch.Interface
	feed *Feed
}

var _ watch.Interface = (*FedWatch)(nil)

// Batches returns the events that come in batches. A batch, which is never empty, is the receiver's until the next one
// is received. The channel is never closed.
func (w *FedWatch) Batches() <-chan []watch.Event { return w.feed.batches }

// ResultChan implements watch.Interface for all events but those of Batches.
func (w *FedWatch) ResultChan() <-chan watch.Event { return w.rest.ResultChan() }

// Stop implements watch.Interface.
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

// flush hands over the batch, and returns false when nobody follows any more.
func (f *Feed) flush() bool {
	if len(f.batch) == 0 {
		return true
	}
	select {
	case f.batches <- f.batch:
	case <-f.quit:
		return false
	}
	// Whoever has received this batch is done with the one before.
	clear(f.other)
	f.batch, f.other, f.bytes = f.other[:0], f.batch, 0
	return true
}

// feedReader feeds the events of a stream, and reads what is left. Like lineReader it reads frames.
type feedReader struct {
	*lineReader
	stream *stream
	feed   *Feed
}

// Read implements io.Reader with the next frame that cannot be fed. Events that have been read are handed over before
// it waits for more.
func (r *feedReader) Read(data []byte) (int, error) {
	for r.rest == nil && r.inLines() {
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
		if frame == nil {
			break
		}
		kind, object, _ := r.stream.pack(frame)
		if object == nil {
			r.rest = frame
			break
		}
		if !r.feed.add(watch.Event{Type: kind, Object: object}, len(frame)) {
			return 0, io.EOF
		}
	}
	if !r.feed.flush() {
		return 0, io.EOF
	}
	return r.lineReader.Read(data)
}
